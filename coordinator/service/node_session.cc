#include "coordinator/service/node_session.h"

#include <algorithm>

#include "coordinator/service/wire.h"
#include "rpc/error.h"

namespace tierpilot {

namespace {

std::vector<uint32_t> read_units(wire::NodeEvent::Started::Reader started) {
  constexpr unsigned kMostUnits = 4096;
  std::vector<uint32_t> units;
  for (const uint32_t unit : started.getCpuUnits())
    if (units.size() < kMostUnits) units.push_back(unit);
  return units;
}

std::map<std::string, std::string> read_unhealthy(wire::NodeStatus::Reader status) {
  constexpr size_t kMostUnits = 8192;
  std::map<std::string, std::string> reasons;
  for (const auto trouble : status.getUnhealthy())
    if (reasons.size() < kMostUnits)
      reasons[short_reason(trouble.getUnit())] = short_reason(trouble.getReason());
  return reasons;
}

}  // namespace

struct NodeSession::Progress {
  uint64_t last = 0;                         // highest sequence of the update
  uint64_t failed = 0;                       // lowest that did not reach the disk; 0: none
  size_t open = 0;                           // writes under way
  kj::Own<kj::PromiseFulfiller<void>> done;  // once somebody waits

  void finished(uint64_t sequence, const Status& status) {
    if (!status) failed = failed ? std::min(failed, sequence) : sequence;
    if (--open == 0 && done) done->fulfill();
  }
};

kj::Promise<void> NodeSession::update(UpdateContext context) {
  auto node = value_or_throw(core_.membership.renew(ticket_));
  const auto status = context.getParams().getStatus();
  node->fast_free_bytes = status.getFastFreeBytes();
  node->slow_free_bytes = status.getSlowFreeBytes();
  core_.membership.says(*node, short_reason(status.getTakesNone()));
  core_.membership.says_unhealthy(*node, read_unhealthy(status));
  cards_.reported(ticket_.node, status);

  auto progress = std::make_shared<Progress>();
  for (const auto event : context.getParams().getEvents()) apply(event, progress);
  Membership::told(*node, context.getParams().getEvents().size());
  for (const auto report : context.getParams().getJobs()) {
    const auto attempt = read_attempt(report.getAttempt());
    const auto* task = core_.state.tasks.find(attempt.task);
    if (task && task->node == ticket_.node && task->attempt == attempt.attempt)
      core_.reported(*task, read_job_report(report));
  }
  core_.dispatcher.pump();
  if (progress->open == 0) {
    answer(context, *progress);
    return kj::READY_NOW;
  }
  auto written = kj::newPromiseAndFulfiller<void>();
  progress->done = kj::mv(written.fulfiller);
  // A slow disk must not cost the node its lease: it is told what is on disk by then.
  const int64_t patience_ms = std::max<int64_t>(core_.state.settings.lease_ms / 8, 50);
  auto patience = loop_.after_ms(patience_ms);
  return written.promise.exclusiveJoin(kj::mv(patience))
      .then([this, self = thisCap(), context, progress]() mutable { answer(context, *progress); });
}

void NodeSession::answer(UpdateContext& context, const Progress& progress) {
  if (progress.open == 0 && progress.last > acknowledged_)
    acknowledged_ = progress.failed ? std::max(acknowledged_, progress.failed - 1) : progress.last;
  const auto released = link_->take_released();
  auto results = context.getResults(capnp::MessageSize{6 + 2 * released.size(), 0});
  results.setLeaseMs(static_cast<uint32_t>(core_.state.settings.lease_ms));
  results.setAcknowledged(acknowledged_);
  auto list = results.initReleased(static_cast<uint32_t>(released.size()));
  for (uint32_t i = 0; i < list.size(); ++i) write_attempt(released[i], list[i]);
}

kj::Promise<void> NodeSession::describe(DescribeContext context) {
  auto node = value_or_throw(core_.membership.renew(ticket_));
  const auto info = context.getParams().getInfo();
  if (text(info.getName()) != ticket_.node)
    kj::throwFatalException(
        to_exception({ErrorCode::kInvalid, "node " + ticket_.node + " describes itself as '" +
                                               text(info.getName()) + "': a name is for good"}));
  cards_.described(ticket_.node, info);
  node->facts.rates = read_rates(info.getTiers());
  return kj::READY_NOW;
}

kj::Promise<void> NodeSession::leave(LeaveContext /*context*/) {
  if (auto left = core_.membership.left(ticket_); !left)
    kj::throwFatalException(to_exception(left.error()));
  return kj::READY_NOW;
}

void NodeSession::apply(wire::NodeEvent::Reader event, const std::shared_ptr<Progress>& progress) {
  const uint64_t sequence = event.getSequence();
  progress->last = std::max(progress->last, sequence);
  auto& lifecycle = core_.lifecycle;
  switch (event.which()) {
    case wire::NodeEvent::REPLICA: {
      const auto replica = event.getReplica();
      const auto state = read_replica(replica);
      core_.membership.replica_changed(ticket_.node, text(replica.getDataset()), state);
      break;
    }
    case wire::NodeEvent::SERVED:
      lifecycle.served(ticket_.node, read_attempt(event.getServed().getAttempt()),
                       read_served(event.getServed().getData()));
      break;
    case wire::NodeEvent::STARTED:
      lifecycle.started(ticket_.node, read_attempt(event.getStarted().getAttempt()),
                        event.getStarted().getPid(), read_units(event.getStarted()));
      break;
    case wire::NodeEvent::EXITED:
      ++progress->open;
      lifecycle.exited(ticket_.node, read_attempt(event.getExited().getAttempt()),
                       read_exit(event.getExited().getExit()), [progress, sequence](Status status) {
                         progress->finished(sequence, status);
                       });
      break;
    case wire::NodeEvent::UNIT_FAULT: {
      const auto* node = core_.state.registry.find(ticket_.node);
      if (!node) break;
      ++progress->open;
      const auto fault = event.getUnitFault();
      core_.gangs.unit_failed(
          ticket_.node + "/" + short_reason(fault.getUnit()), short_reason(fault.getKind()),
          short_reason(fault.getDetail()), told_as(node->facts, sequence),
          [progress, sequence](const Status& status) { progress->finished(sequence, status); });
      break;
    }
    case wire::NodeEvent::CHECKPOINTED: {
      const auto taken = event.getCheckpointed();
      core_.checkpoints.measured(ticket_.node, read_attempt(taken.getAttempt()),
                                 text(taken.getCheckpoint()),
                                 {taken.getStallNs(), taken.getCopyNs()});
      break;
    }
  }
}

}  // namespace tierpilot
