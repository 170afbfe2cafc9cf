#include "tests/bench/pipeline/simulated_node.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/error.h"
#include "rpc/protocol.h"

namespace tierpilot::bench {
namespace {

// Joins are answered one by one; a hundred thousand at once would only queue.
constexpr size_t kJoinsAtOnce = 50;

// Words of an update; without a hint its builder clears 8 KiB.
capnp::MessageSize update_size(size_t events) {
  return {48 + 48 * events, 0};
}

void write(const SimulatedReplica& replica, bool home, wire::Replica::Builder out) {
  out.setDataset(replica.dataset);
  out.setVersion(1);
  out.setBytes(replica.bytes);
  out.setInFast(true);
  out.setInSlow(home);
  out.setHome(home);
  out.initDigest().setLow(std::hash<std::string>()(replica.dataset) | 1);
}

}  // namespace

void Runs::add(std::function<void()> end) {
  running_.push_back({system_clock().boot_ns() + run_ms_ * 1'000'000, std::move(end)});
  if (running_.size() == 1) wait_for_first();
}

void Runs::wait_for_first() {
  const int64_t left_ns = running_.front().end_ns - system_clock().boot_ns();
  loop_.detach(loop_.after_ms(std::max<int64_t>(left_ns, 0) / 1'000'000 + 1).then([this] {
    const int64_t now_ns = system_clock().boot_ns();
    while (!running_.empty() && running_.front().end_ns <= now_ns) {
      const auto end = std::move(running_.front().end);
      running_.pop_front();
      end();
    }
    if (!running_.empty()) wait_for_first();
  }),
               "tasks that run");
}

class SimulatedNode::Service final : public wire::Node::Server {
 public:
  explicit Service(SimulatedNode& node) : node_(node) {}

  kj::Promise<void> start(StartContext context) override {
    const auto attempt = context.getParams().getAssignment().getAttempt();
    node_.assigned(attempt.getTask(), attempt.getAttempt());
    // Where the ranks of a gang would meet.
    context.getResults().setMasterPort(29'500);
    return kj::READY_NOW;
  }

  kj::Promise<void> createDataset(CreateDatasetContext context) override {
    const auto params = context.getParams();
    write({std::string(params.getName().cStr()), params.getSource().getZeroBytes(), {}}, true,
          context.getResults().initReplica());
    return kj::READY_NOW;
  }

 private:
  SimulatedNode& node_;
};

SimulatedNode::SimulatedNode(EventLoop& loop, Runs& runs, std::string name, uint32_t units,
                             NodeHooks hooks)
    : loop_(loop), runs_(runs), name_(std::move(name)), units_(units), hooks_(std::move(hooks)) {}

kj::Promise<void> SimulatedNode::join(const Address& coordinator) {
  return RpcConnection::connect(loop_, coordinator, nullptr)
      .then([this](kj::Own<RpcConnection> connection) {
        connection_ = kj::mv(connection);
        auto request = connection_->bootstrap().castAs<wire::Cluster>().registerNodeRequest();
        auto info = request.initInfo();
        write_program(own_program("tierpilotd"), info.initProgram());
        info.setName(name_);
        info.setInstance(1);
        info.setUnits(units_);
        info.setMemoryBytes(uint64_t{1} << 36);
        info.setFastBudgetBytes(uint64_t{1} << 34);
        info.setSlowBudgetBytes(uint64_t{1} << 36);
        info.setDataAddress("unix:/nonexistent/" + name_);
        request.setNode(wire::Node::Client(kj::heap<Service>(*this)));
        return request.send();
      })
      .then([this](auto&& answer) {
        lease_ms_ = answer.getLeaseMs();
        session_ = answer.getSession();
        const auto complain = [this](kj::Exception&& exception) {
          spdlog::error("{}: {}", name_, to_error(exception).message);
        };
        reporting_ = keep_reporting().eagerlyEvaluate(complain);
        beating_ = keep_beating().eagerlyEvaluate(complain);
      });
}

void SimulatedNode::assigned(uint64_t task, uint32_t attempt) {
  hooks_.started(task);
  report(Event::Kind::kServed, task, attempt);
  report(Event::Kind::kStarted, task, attempt);
  runs_.add([this, task, attempt] { report(Event::Kind::kExited, task, attempt); });
}

void SimulatedNode::report(Event::Kind kind, uint64_t task, uint32_t attempt) {
  events_.push_back({++sequence_, kind, task, attempt});
  if (wake_) wake_->fulfill();
}

void SimulatedNode::hold(const std::vector<SimulatedReplica>& replicas) {
  for (const auto& replica : replicas)
    events_.push_back(
        {.sequence = ++sequence_, .kind = Event::Kind::kReplica, .replica = &replica});
  if (wake_) wake_->fulfill();
}

kj::Promise<void> SimulatedNode::keep_reporting() {
  return update().then([this] { return until_work(); }).then([this] { return keep_reporting(); });
}

kj::Promise<void> SimulatedNode::update() {
  auto request = KJ_ASSERT_NONNULL(session_).updateRequest(update_size(events_.size()));
  auto list = request.initEvents(static_cast<uint32_t>(events_.size()));
  for (uint32_t i = 0; i < list.size(); ++i) {
    const Event& event = events_[i];
    list[i].setSequence(event.sequence);
    const auto fill = [&](wire::Attempt::Builder attempt) {
      attempt.setTask(event.task);
      attempt.setAttempt(event.attempt);
    };
    switch (event.kind) {
      case Event::Kind::kServed: {
        auto served = list[i].initServed();
        fill(served.initAttempt());
        served.initData().setLatencyNs(20'000);
        served.getData().setReferenceNs(10'000);
        break;
      }
      case Event::Kind::kStarted:
        fill(list[i].initStarted().initAttempt());
        break;
      case Event::Kind::kReplica:
        write(*event.replica, event.replica->home == name_, list[i].initReplica());
        break;
      case Event::Kind::kExited:
        fill(list[i].initExited().initAttempt());
        list[i].getExited().initExit().setHow("exited");
        list[i].getExited().getExit().setWallNs(static_cast<uint64_t>(runs_.run_ms()) * 1'000'000);
        break;
    }
  }
  sent_ = sequence_;
  request.initStatus().setFastFreeBytes(uint64_t{1} << 34);
  return request.send().then([this](auto&& answer) { acknowledged(answer.getAcknowledged()); });
}

void SimulatedNode::acknowledged(uint64_t sequence) {
  while (!events_.empty() && events_.front().sequence <= sequence) {
    if (events_.front().kind == Event::Kind::kExited) hooks_.recorded(events_.front().task);
    events_.pop_front();
  }
}

kj::Promise<void> SimulatedNode::until_work() {
  if (sequence_ > sent_) return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  wake_ = kj::mv(paf.fulfiller);
  return kj::mv(paf.promise);
}

// An update that comes of it, without events, renews the lease.
kj::Promise<void> SimulatedNode::keep_beating() {
  return loop_.after_ms(lease_ms_ / 3).then([this] {
    if (wake_) wake_->fulfill();
    return keep_beating();
  });
}

void join_all(EventLoop& loop, const Address& coordinator,
              const std::vector<std::unique_ptr<SimulatedNode>>& nodes) {
  for (size_t first = 0; first < nodes.size(); first += kJoinsAtOnce) {
    auto joins = kj::Vector<kj::Promise<void>>();
    for (size_t i = first; i < std::min(first + kJoinsAtOnce, nodes.size()); ++i)
      joins.add(nodes[i]->join(coordinator));
    kj::joinPromises(joins.releaseAsArray()).wait(loop.wait_scope());
  }
}

}  // namespace tierpilot::bench
