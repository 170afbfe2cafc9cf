#include "coordinator/service/cluster_service.h"

#include <unistd.h>

#include "coordinator/service/wire.h"
#include "rpc/error.h"
#include "rpc/protocol.h"

namespace tierpilot {

kj::Promise<void> ClusterService::health(HealthContext context) {
  auto& state = caller_->core().state;
  const int64_t now_ns = state.clock.boot_ns();
  auto out = context.getResults().initHealth();
  out.setVersion(TIERPILOT_VERSION);
  out.setStartedMs(caller_->shared().started_ms);
  out.setDegraded(state.store.trouble());
  out.setNodesUp(state.registry.summary().up_count());
  out.setQueued(state.tasks.queue().size() + state.tasks.shared_queue().size());
  out.setKeptBack(state.held.waiting());
  out.setAssigned(state.tasks.in_state(TaskState::kAssigned));
  out.setRunning(state.tasks.in_state(TaskState::kRunning));
  out.setBusyUnitMs(static_cast<uint64_t>(state.scores.busy_unit_ms(now_ns)));
  out.setCapacityUnitMs(static_cast<uint64_t>(state.scores.capacity_unit_ms(now_ns)));
  uint64_t fallbacks = 0;
  for (const auto& [name, score] : state.scores.policies()) fallbacks += score.fallbacks;
  out.setFallbacks(fallbacks);
  out.setRejectedFrames(caller_->shared().rejected_frames());
  out.setNowMs(state.clock.wall_ms());
  const auto active = caller_->core().host.active();
  out.setPolicy(active);
  if (const auto* guard = caller_->core().oversight.guard(active)) {
    out.setPolicyMode(policy_mode_name(guard->memory().mode));
    out.setPolicyStanding(standing_name(guard->memory().standing));
    out.setPolicyWhy(guard->memory().why);
  }
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::hello(HelloContext context) {
  const auto own = own_program("tierpilot-coordinator");
  const auto client = read_program(context.getParams().getProgram(), "the client");
  value_or_throw(check_programs(own, client));
  write_program(own, context.getResults().initProgram());
  return kj::READY_NOW;
}

kj::Promise<void> ClusterService::backup(BackupContext context) {
  // It has everybody's tasks: no role gives it to another machine.
  const bool own_machine =
      caller_->peer().uid && (*caller_->peer().uid == 0 || *caller_->peer().uid == ::geteuid());
  caller_->allow_change(Role::kOperate, "take a backup");
  if (!own_machine)
    refuse(ErrorCode::kDenied,
           "a backup has everybody's tasks: only root and the coordinator's "
           "user get one, on its machine");
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(paf.fulfiller));
  caller_->shared().backups.make([context, fulfiller](Result<UniqueFd> made) mutable {
    if (!made) return (*fulfiller)->reject(to_exception(made.error()));
    context.getResults().setBackup(kj::heap<BackupReader>(std::move(*made)));
    (*fulfiller)->fulfill();
  });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
