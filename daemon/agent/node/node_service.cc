#include "daemon/agent/node/node_service.h"

#include "daemon/agent/link/wire.h"
#include "rpc/digest.h"

namespace tierpilot::agent {

kj::Promise<void> NodeService::start(StartContext context) {
  auto assignment = value_or_throw(read_assignment(context.getParams().getAssignment()));
  const AttemptId attempt = assignment.attempt;
  value_or_throw(tasks_.start(std::move(assignment)));
  context.getResults().setMasterPort(tasks_.attempts().master_port(attempt));
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::cancel(CancelContext context) {
  const auto params = context.getParams();
  tasks_.cancel(read_attempt(params.getAttempt()), text(params.getReason()));
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::pause(PauseContext context) {
  const auto params = context.getParams();
  value_or_throw(tasks_.pause(read_attempt(params.getAttempt()), params.getPaused()));
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::setShare(SetShareContext context) {
  const auto params = context.getParams();
  context.getResults().setMilliUnits(value_or_throw(
      tasks_.shares().set(read_attempt(params.getAttempt()), params.getMilliUnits())));
  return kj::READY_NOW;
}

static void advise(JobChannels& channels, AttemptId attempt, wire::JobAdvice::Reader advice) {
  switch (advice.which()) {
    case wire::JobAdvice::CHECKPOINT_NOW:
      return channels.ask_checkpoint(attempt, text(advice.getCheckpointNow()));
    case wire::JobAdvice::CHECKPOINT_EVERY: {
      const auto every = advice.getCheckpointEvery();
      return channels.say(
          attempt, job_checkpoint_every_line(static_cast<double>(every.getIntervalMs()) / 1e3,
                                             static_cast<double>(every.getCostMs()) / 1e3,
                                             every.getFailuresPerHour()));
    }
    case wire::JobAdvice::CHECKPOINT_SAFE:
      return channels.say(attempt,
                          job_checkpoint_safe_line(advice.getCheckpointSafe().getIteration(),
                                                   advice.getCheckpointSafe().getCopies()));
  }
  // Others are of a later version.
}

kj::Promise<void> NodeService::tellJob(TellJobContext context) {
  const auto params = context.getParams();
  advise(channels_, read_attempt(params.getAttempt()), params.getAdvice());
  return kj::READY_NOW;
}

kj::Promise<void> NodeService::createDataset(CreateDatasetContext context) {
  const auto params = context.getParams();
  auto source = value_or_throw(read_source(params.getSource(), other_users_));
  auto pending = creations_.add();
  pool_.create(text(params.getName()), std::move(source), std::move(pending.complete));
  return pending.promise.then([context](ReplicaChange made) mutable {
    write_replica(context.getResults().initReplica(), made);
  });
}

kj::Promise<void> NodeService::dropDataset(DropDatasetContext context) {
  const auto params = context.getParams();
  auto pending = changes_.add();
  if (const uint64_t only = params.getOnlyVersion(); only > 0) {
    pool_.discard({text(params.getName()), only, read_digest(params.getOnlyDigest())},
                  std::move(pending.complete));
    return kj::mv(pending.promise);
  }
  pool_.drop(text(params.getName()), params.getBelowVersion(), std::move(pending.complete));
  return kj::mv(pending.promise);
}

kj::Promise<void> NodeService::setHome(SetHomeContext context) {
  const auto params = context.getParams();
  auto pending = changes_.add();
  pool_.set_home({text(params.getName()), params.getVersion(), read_digest(params.getDigest())},
                 params.getHome(), std::move(pending.complete));
  return kj::mv(pending.promise);
}

kj::Promise<void> NodeService::keepDataset(KeepDatasetContext context) {
  auto pending = creations_.add();
  pool_.keep(value_or_throw(read_need(context.getParams().getNeed())), std::move(pending.complete));
  return pending.promise.then([context](ReplicaChange kept) mutable {
    write_replica(context.getResults().initReplica(), kept);
  });
}

kj::Promise<void> NodeService::verifyDataset(VerifyDatasetContext context) {
  const auto params = context.getParams();
  auto pending = checks_.add();
  pool_.verify({text(params.getDataset()), params.getVersion(), read_digest(params.getDigest())},
               std::move(pending.complete));
  return pending.promise.then([context](ReplicaCheck check) mutable {
    auto results = context.getResults();
    results.setFast(std::string(copy_state_name(check.fast)));
    results.setSlow(std::string(copy_state_name(check.slow)));
  });
}

kj::Promise<void> NodeService::readLog(ReadLogContext context) {
  const auto params = context.getParams();
  const auto chunk =
      value_or_throw(dirs_.read_log(read_attempt(params.getAttempt()), text(params.getStream()),
                                    params.getOffset(), params.getMaxBytes()));
  auto results = context.getResults();
  results.setData(
      kj::arrayPtr(reinterpret_cast<const kj::byte*>(chunk.data.data()), chunk.data.size()));
  results.setEnd(chunk.end);
  results.setDropped(chunk.dropped);
  return kj::READY_NOW;
}

}  // namespace tierpilot::agent
