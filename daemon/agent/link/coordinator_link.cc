#include "daemon/agent/link/coordinator_link.h"

#include <capnp/message.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/agent/link/bounded_reports.h"
#include "daemon/agent/link/wire.h"
#include "model/registration.h"
#include "rpc/error.h"
#include "rpc/protocol.h"

namespace tierpilot::agent {
CoordinatorLink::CoordinatorLink(Parts parts, Address address, Tls tls, uint64_t seed)
    : parts_(std::move(parts)),
      address_(std::move(address)),
      tls_(std::move(tls)),
      backoff_(kFirstRetryMs, kLongestRetryMs, seed) {}

CoordinatorLink::~CoordinatorLink() = default;

void CoordinatorLink::start() {
  running_ = run().eagerlyEvaluate(
      [](kj::Exception&& e) { spdlog::critical("coordinator link: {}", to_error(e).message); });
}

void CoordinatorLink::wake() {
  if (wake_) wake_->fulfill();
}

kj::Promise<void> CoordinatorLink::run() {
  return live_once()
      .then(
          []() -> Error {
            return {ErrorCode::kUnreachable, "the connection was closed"};
          },
          [](kj::Exception&& e) { return to_error(e); })
      .then([this](Error error) {
        registered_ = false;
        session_.reset();
        connection_ = nullptr;
        end_lapsed_lease();
        const int64_t delay_ms = retry_ms(error);
        return parts_.loop.after_ms(delay_ms);
      })
      .then([this] { return run(); });
}

// Until the connection ends; only then does it resolve or reject.
kj::Promise<void> CoordinatorLink::live_once() {
  return RpcConnection::connect(parts_.loop, address_, tls_)
      .then([this](kj::Own<RpcConnection> connection) {
        connection_ = kj::mv(connection);
        return register_node()
            .then([this] { return keep_reporting(); })
            .exclusiveJoin(connection_->on_disconnect());
      });
}

kj::Promise<void> CoordinatorLink::register_node() {
  end_lapsed_lease();
  auto request = connection_->bootstrap().castAs<wire::Cluster>().registerNodeRequest();
  fill_registration(request);
  const int64_t sent_ns = parts_.clock.boot_ns();
  return or_give_up(request.send().then([this, sent_ns](auto&& answer) {
    const auto coordinator = read_program(answer.getProgram(), "tierpilot-coordinator");
    value_or_throw(check_programs(own_program("tierpilotd"), coordinator));
    session_ = answer.getSession();
    registered_ = true;
    backoff_.reset();
    last_error_.message.clear();
    parts_.say(fmt::format("Registered with {}", address_.to_string()));
    parts_.registered();
    parts_.tasks.registered();
    lease_granted(sent_ns, answer.getLeaseMs());
  }),
                    "registration");
}

void CoordinatorLink::fill_registration(wire::Cluster::RegisterNodeParams::Builder to) {
  parts_.write_info(to.initInfo());
  described_ = capnp::canonicalize(to.getInfo().asReader());
  to.setNode(parts_.node);
  const auto replicas = parts_.replicas();
  const size_t told = std::min(replicas.size(), kReplicasInRegistration);
  parts_.events.registered(replicas, told);
  auto list = to.initReplicas(static_cast<uint32_t>(told));
  for (uint32_t i = 0; i < list.size(); ++i) write_replica(list[i], replicas[i]);
  const auto live = parts_.tasks.attempts().live();
  auto attempts = to.initLive(static_cast<uint32_t>(live.size()));
  for (uint32_t i = 0; i < attempts.size(); ++i) write_attempt(live[i], attempts[i]);
}

kj::Promise<void> CoordinatorLink::keep_reporting() {
  return update()
      .then([this] { return describe(); })
      .then([this] { return until_work(); })
      .then([this] { return keep_reporting(); });
}

kj::Promise<void> CoordinatorLink::describe() {
  auto request = session_->describeRequest();
  parts_.write_info(request.initInfo());
  auto now = capnp::canonicalize(request.getInfo().asReader());
  if (now.asBytes() == described_.asBytes()) return kj::READY_NOW;
  return or_give_up(
      request.send().then([this, now = kj::mv(now)](auto&&) mutable { described_ = kj::mv(now); }),
      "a description of the node");
}

kj::Promise<void> CoordinatorLink::update() {
  auto request = session_->updateRequest();
  fill_update(request);
  const int64_t sent_ns = parts_.clock.boot_ns();
  return or_give_up(request.send().then([this, sent_ns](auto&& answer) {
    acknowledged(answer.getAcknowledged());
    for (const auto attempt : answer.getReleased()) parts_.tasks.release(read_attempt(attempt));
    end_lapsed_lease();
    lease_granted(sent_ns, answer.getLeaseMs());
  }),
                    "an update");
}

kj::Promise<void> CoordinatorLink::leave() {
  constexpr int64_t kPatienceMs = 1'000;
  if (!session_) return kj::READY_NOW;
  return session_->leaveRequest()
      .send()
      .ignoreResult()
      .exclusiveJoin(parts_.loop.after_ms(kPatienceMs))
      .catch_([](kj::Exception&& cause) {
        spdlog::debug("the coordinator was not told of the end: {}", to_error(cause).message);
      });
}

void CoordinatorLink::fill_update(wire::NodeSession::UpdateParams::Builder to) {
  const auto batch = parts_.events.batch();
  events_sent_ = batch.size();
  auto events = to.initEvents(static_cast<uint32_t>(batch.size()));
  const int64_t now_ns = parts_.clock.boot_ns();
  for (uint32_t i = 0; i < events.size(); ++i) write_event(events[i], *batch[i], now_ns);
  parts_.write_status(to.initStatus());
  const auto reports = bounded(parts_.job_reports(), kMostReportBytes);
  auto jobs = to.initJobs(static_cast<uint32_t>(reports.size()));
  for (uint32_t i = 0; i < jobs.size(); ++i) write_job_report(jobs[i], reports[i]);
}

void CoordinatorLink::acknowledged(uint64_t sequence) {
  const size_t before = parts_.events.size();
  for (const auto attempt : parts_.events.acknowledge(sequence))
    parts_.tasks.exit_acknowledged(attempt);
  stuck_ = events_sent_ > 0 && parts_.events.size() == before;
}

kj::Promise<void> CoordinatorLink::until_work() {
  // A coordinator that acknowledges nothing (its disk is full) is not asked again at once.
  if (!parts_.events.empty() && !stuck_) return kj::READY_NOW;
  auto heartbeat = parts_.loop.after_ms(lease_.heartbeat_ms());
  if (!parts_.events.empty()) return heartbeat;
  auto paf = kj::newPromiseAndFulfiller<void>();
  wake_ = kj::mv(paf.fulfiller);
  return paf.promise.exclusiveJoin(kj::mv(heartbeat));
}

template <class T>
kj::Promise<T> CoordinatorLink::or_give_up(kj::Promise<T> answer, const char* what) {
  // A dead connection is found out while there is lease enough left for another one.
  const int64_t timeout_ms = lease_.lease_ms() > 0 ? lease_.lease_ms() / 2 : kAnswerTimeoutMs;
  return answer.exclusiveJoin(parts_.loop.after_ms(timeout_ms).then([what, timeout_ms]() -> T {
    kj::throwFatalException(to_exception(
        {ErrorCode::kTimeout, fmt::format("no answer to {} in {} ms", what, timeout_ms)}));
  }));
}

void CoordinatorLink::lease_granted(int64_t sent_ns, uint32_t lease_ms) {
  lease_.granted(sent_ns, lease_ms);
  if (!lease_.holds(parts_.clock.boot_ns())) return;
  parts_.extend_lease(lease_.deadline_ns(), sent_ns);
  parts_.tasks.lease_granted(lease_.deadline_ns());
  if (lease_watched_) return;
  lease_watched_ = true;
  lease_watch_ = until_lease_ends().eagerlyEvaluate(nullptr);
}

void CoordinatorLink::end_lapsed_lease() {
  if (lease_.deadline_ns() != Lease::kNever && !lease_.holds(parts_.clock.boot_ns()))
    parts_.tasks.lease_ended();
}

kj::Promise<void> CoordinatorLink::until_lease_ends() {
  const int64_t left_ns = lease_.deadline_ns() - parts_.clock.boot_ns();
  return parts_.loop.after_ms(std::max<int64_t>(left_ns, 0) / 1'000'000 + 1)
      .then([this]() -> kj::Promise<void> {
        if (lease_.holds(parts_.clock.boot_ns())) return until_lease_ends();
        lease_watched_ = false;
        if (!parts_.tasks.attempts().idle())
          spdlog::warn("the lease has ended: {} attempts are given up",
                       parts_.tasks.attempts().unended());
        parts_.tasks.lease_ended();
        return kj::READY_NOW;
      });
}

int64_t CoordinatorLink::retry_ms(const Error& error) {
  const bool lasting = error.code == ErrorCode::kConflict || error.code == ErrorCode::kInvalid ||
                       error.code == ErrorCode::kDenied;
  const int64_t left_ms =
      parts_.tasks.attempts().idle() ? 0 : lease_.left_ms(parts_.clock.boot_ns());
  const int64_t delay_ms = lasting ? backoff_.longest_ms() : backoff_.next_ms(left_ms);
  // Said once: a coordinator that is away for a night must not fill the log.
  if (error.message != last_error_.message) {
    spdlog::log(lasting ? spdlog::level::err : spdlog::level::warn,
                "not registered with {}: {}; trying again", address_.to_string(), error.message);
    parts_.say(fmt::format("Not registered: {}", error.message));
  }
  last_error_ = error;
  return delay_ms;
}

}  // namespace tierpilot::agent
