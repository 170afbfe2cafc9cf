#include "fake_coordinator.h"

#include "rpc/digest.h"
#include "rpc/error.h"

namespace tierpilot::testing_support {
namespace {

AttemptId attempt_of(wire::Attempt::Reader from) {
  return {from.getTask(), from.getAttempt()};
}

HeardEvent heard_event(wire::NodeEvent::Reader from) {
  HeardEvent event;
  event.sequence = from.getSequence();
  switch (from.which()) {
    case wire::NodeEvent::REPLICA:
      event.kind = "replica";
      event.dataset = from.getReplica().getDataset().cStr();
      break;
    case wire::NodeEvent::SERVED: {
      event.kind = "served";
      event.attempt = attempt_of(from.getServed().getAttempt());
      const auto data = from.getServed().getData();
      event.local_bytes = data.getLocalBytes();
      event.promoted_bytes = data.getPromotedBytes();
      event.fetched_bytes = data.getFetchedBytes();
      event.latency_ns = data.getLatencyNs();
      break;
    }
    case wire::NodeEvent::STARTED:
      event.kind = "started";
      event.attempt = attempt_of(from.getStarted().getAttempt());
      event.pid = from.getStarted().getPid();
      break;
    case wire::NodeEvent::EXITED: {
      event.kind = "exited";
      event.attempt = attempt_of(from.getExited().getAttempt());
      const auto exit = from.getExited().getExit();
      event.how = exit.getHow().cStr();
      event.code = exit.getCode();
      event.reason = exit.getReason().cStr();
      event.memory_tier = exit.getMemoryTier().cStr();
      for (const auto written : exit.getWritten())
        event.written_versions.push_back(written.getVersion());
      break;
    }
  }
  return event;
}

}  // namespace

class FakeCoordinator::Session final : public wire::NodeSession::Server {
 public:
  explicit Session(FakeCoordinator& owner) : owner_(owner) {}

  kj::Promise<void> update(UpdateContext context) override {
    ++owner_.updates;
    owner_.takes_none = context.getParams().getStatus().getTakesNone().cStr();
    uint64_t last = 0;
    for (const auto event : context.getParams().getEvents()) {
      owner_.events.push_back(heard_event(event));
      if (event.isReplica()) owner_.learn(event.getReplica());
      if (event.isExited())
        for (const auto written : event.getExited().getExit().getWritten()) owner_.learn(written);
      last = event.getSequence();
    }
    if (!owner_.answer) return kj::NEVER_DONE;
    context.getResults().setLeaseMs(owner_.lease_ms);
    context.getResults().setAcknowledged(owner_.acknowledge ? last : 0);
    return kj::READY_NOW;
  }
  kj::Promise<void> describe(DescribeContext /*context*/) override { return kj::READY_NOW; }
  kj::Promise<void> leave(LeaveContext /*context*/) override {
    ++owner_.farewells;
    return kj::READY_NOW;
  }

 private:
  FakeCoordinator& owner_;
};

class FakeCoordinator::Cluster final : public wire::Cluster::Server {
 public:
  explicit Cluster(FakeCoordinator& owner) : owner_(owner) {}

  kj::Promise<void> registerNode(RegisterNodeContext context) override {
    if (owner_.refusal) kj::throwFatalException(to_exception(*owner_.refusal));
    const auto params = context.getParams();
    Registration& seen = owner_.registrations.emplace_back();
    seen.name = params.getInfo().getName().cStr();
    seen.instance = params.getInfo().getInstance();
    for (const uint64_t instance : params.getInfo().getPredecessors())
      seen.predecessors.push_back(instance);
    seen.data_address = params.getInfo().getDataAddress().cStr();
    for (const auto attempt : params.getLive()) seen.live.push_back(attempt_of(attempt));
    for (const auto replica : params.getReplicas()) {
      seen.replicas.emplace_back(replica.getDataset().cStr());
      owner_.learn(replica);
    }
    for (const auto tier : params.getInfo().getTiers())
      seen.tier_roles.emplace_back(tier.getRole().cStr());
    for (const auto feature : params.getInfo().getFeatures())
      seen.features[feature.getName().cStr()] = feature.getOn() ? "on" : feature.getReason().cStr();
    owner_.node = params.getNode();
    owner_.nodes.erase(seen.name);
    owner_.nodes.emplace(seen.name, params.getNode());
    context.getResults().setSession(kj::heap<Session>(owner_));
    context.getResults().setLeaseMs(owner_.lease_ms);
    if (owner_.oldest_protocol > 0) {
      auto program = context.getResults().initProgram();
      program.setProtocol(owner_.oldest_protocol);
      program.setOldestProtocol(owner_.oldest_protocol);
    }
    return kj::READY_NOW;
  }

 private:
  FakeCoordinator& owner_;
};

FakeCoordinator::FakeCoordinator(std::string socket_path, uint32_t lease_ms)
    : lease_ms(lease_ms), path_(std::move(socket_path)) {}

FakeCoordinator::~FakeCoordinator() {
  go_away();
}

void FakeCoordinator::listen() {
  auto made = RpcServer::listen(loop, {.path = path_}, nullptr, RpcLimits(),
                                [this](const Peer&, const auto&) -> capnp::Capability::Client {
                                  return wire::Cluster::Client(kj::heap<Cluster>(*this));
                                });
  if (!made) throw std::runtime_error(made.error().message);
  server_ = std::move(*made);
}

void FakeCoordinator::go_away() {
  node.reset();
  nodes.clear();
  server_.reset();
}

bool FakeCoordinator::run_until(const std::function<bool()>& done, int64_t timeout_ms) {
  bool happened = done();
  if (happened) return true;
  std::function<kj::Promise<void>(int64_t)> poll = [&](int64_t left_ms) {
    return loop.after_ms(5).then([&, left_ms]() -> kj::Promise<void> {
      happened = done();
      if (!happened && left_ms > 0) return poll(left_ms - 5);
      loop.stop();
      return kj::READY_NOW;
    });
  };
  loop.detach(poll(timeout_ms), "waiting");
  loop.run();
  return happened;
}

Status FakeCoordinator::call(kj::Promise<void> promise) {
  std::optional<Status> result;
  loop.detach(promise.then([&result] { result = Status(); },
                           [&result](kj::Exception&& e) { result = tl::unexpected(to_error(e)); }),
              "call");
  if (!run_until([&] { return result.has_value(); }))
    return fail(ErrorCode::kTimeout, "the node does not answer");
  return *result;
}

Status FakeCoordinator::start(AttemptId attempt, const std::vector<std::string>& argv,
                              const std::vector<std::pair<std::string, bool>>& datasets,
                              uint64_t version, uint32_t units, const std::string& source) {
  auto request = node->startRequest();
  auto assignment = request.initAssignment();
  assignment.initAttempt().setTask(attempt.task);
  assignment.getAttempt().setAttempt(attempt.attempt);
  auto list = assignment.initArgv(static_cast<uint32_t>(argv.size()));
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, argv[i]);
  auto needs = assignment.initDatasets(static_cast<uint32_t>(datasets.size()));
  for (uint32_t i = 0; i < needs.size(); ++i) {
    needs[i].setDataset(datasets[i].first);
    needs[i].setWrite(datasets[i].second);
    needs[i].setVersion(version);
    needs[i].setBytes(dataset_bytes);
    if (const auto told = contents.find({datasets[i].first, version}); told != contents.end())
      write_digest(needs[i].initDigest(), told->second);
    if (!source.empty()) needs[i].initSources(1).set(0, source);
  }
  assignment.setUnits(units);
  assignment.setMemoryTier(memory_tier);
  return call(request.send().ignoreResult());
}

void FakeCoordinator::learn(wire::Replica::Reader replica) {
  if (const auto digest = read_digest(replica.getDigest()); digest.known())
    contents[{replica.getDataset().cStr(), replica.getVersion()}] = digest;
}

std::string FakeCoordinator::read_log(AttemptId attempt, const std::string& stream) {
  auto request = node->readLogRequest();
  request.initAttempt().setTask(attempt.task);
  request.getAttempt().setAttempt(attempt.attempt);
  request.setStream(stream);
  request.setMaxBytes(4096);
  std::string text;
  auto status = call(request.send().then([&text](auto&& answer) {
    const auto data = answer.getData();
    text.assign(reinterpret_cast<const char*>(data.begin()), data.size());
  }));
  return status ? text : status.error().message;
}

const HeardEvent* FakeCoordinator::heard(const std::string& kind, AttemptId attempt) const {
  for (const auto& event : events)
    if (event.kind == kind && event.attempt == attempt) return &event;
  return nullptr;
}

}  // namespace tierpilot::testing_support
