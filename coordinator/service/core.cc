#include "coordinator/service/core.h"

#include <fmt/format.h>

#include <stdexcept>

#include "coordinator/core/outcomes/told_task.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr int64_t kRetryNs = 1'000'000'000;

std::unique_ptr<quality::Allocator> allocator_of(const CoreSettings& settings) {
  auto made = quality::make_allocator((settings.elastic_guard ? "guarded:" : "") +
                                      settings.elastic_allocator);
  if (!made) throw std::invalid_argument(made.error().message);
  return std::move(*made);
}

}  // namespace

Core::Core(const CoreSettings& settings, const Clock& clock, Store& store, PolicyHost& policy_host,
           Dispatcher::Hooks hooks)
    : state{.settings = settings, .clock = clock, .store = store},
      host(policy_host),
      oversight(store, clock),
      dispatcher(state, policy_host, oversight, hooks),
      lifecycle(state,
                {[this] { pump(); },
                 [this](uint64_t task) {
                   gang_losses.forget(task);
                   progress.ended(task);
                   waits_.ended(task);
                 },
                 [this](AttemptId attempt, const ServedData& data) {
                   dispatcher.credits().served(attempt, data);
                 },
                 [this](AttemptId attempt, bool succeeded) {
                   dispatcher.credits().ended(attempt, succeeded);
                 },
                 [this](Task& rank) { gangs.rank_started(rank); },
                 [this](Task& rank, const Verdict& verdict) { gangs.rank_over(rank, verdict); },
                 [this](Task& gang, const std::string& why) { gangs.stop(gang, why); },
                 [this](const Task& task) {
                   elastic.started(task);
                   shares.started(task);
                 },
                 [this](const Task& task, bool succeeded) { shares.ended(task, succeeded); }}),
      due_times(state, lifecycle),
      gangs(state, lifecycle, hooks.after),
      elastic(state, allocator_of(settings)),
      growth(state, {[this](uint64_t gang, const std::string& why) { checkpoints.ask(gang, why); },
                     [this](Task& gang, uint32_t ranks, const std::string& why) {
                       gangs.begin_again(gang, ranks, why);
                     }}),
      intake(
          state,
          [this](auto& specs, const auto& coming) { return shares.check_promises(specs, coming); },
          [this] { pump(); }),
      membership(state, lifecycle),
      datasets(
          state, [this] { dispatcher.pump(); },
          [this](const DatasetVersion& what, std::function<void()> done) {
            copies.when_kept(what, std::move(done));
          }),
      checker(state),
      orders(state),
      replicator(state, orders),
      copies(state, orders, [this](uint64_t task) { lifecycle.copied(task); }),
      checkpoints(state, datasets),
      shares(state, lifecycle, checkpoints, settings.share_predictor),
      history(state, hooks.after),
      progress(state),
      nodes(state) {
  dispatcher.set_lifecycle(lifecycle);
  dispatcher.set_gangs(gangs);
  membership.on_replica = [this](const auto& node, const auto& dataset, const auto& replica) {
    checkpoints.found(node, dataset, replica);
  };
  post_ = std::move(hooks.post);
  oversight.on_deposed = [this](const std::string& policy, const std::string& why) {
    host.keep_version(policy, about(policy, "the guard deposed it: " + why));
  };
}

Status Core::begin(const OversightSettings& settings, int64_t version_interval_ms) {
  std::map<std::string, std::string> learned;
  for (const auto& module : host.modules())
    if (module.learning) learned[module.info.name] = module.learning->traits().judged;
  if (auto begun = oversight.begin(settings, learned); !begun) return begun;
  if (auto begun = gangs.policies().begin(settings); !begun) return begun;
  due_times.begin();
  lifecycle.resume_copies(copies);
  gangs.begin();
  elastic.begin();
  shares.begin();
  if (auto begun = checkpoints.begin(); !begun) return begun;
  if (auto begun = progress.begin([this](const Task& task, const JobPoint& point) {
        elastic.reported_before(task, point);
        gangs.reported(task, point);
      });
      !begun)
    return begun;
  version_interval_ns_ = version_interval_ms * 1'000'000;
  next_versions_ns_ = state.clock.boot_ns() + version_interval_ns_;
  const auto active = host.active();
  if (learned.contains(active) && host.learner(active).versions.empty() && host.keeps_versions())
    host.keep_version(active, about(active, "the first one"));
  return {};
}

WeightsVersion Core::about(const std::string& policy, const std::string& why) {
  const auto measured = oversight.measured(policy);
  return {0, state.clock.wall_ms(), why, 0, 0, 0, measured[kReward], measured[kResponse]};
}

void Core::keep_versions(const std::string& why) {
  next_versions_ns_ = state.clock.boot_ns() + version_interval_ns_;
  if (!host.keeps_versions()) return;
  for (const auto& module : host.modules())
    if (const auto& name = module.info.name; module.learning && host.learner(name).batches > 0)
      host.keep_version(name, about(name, why));
}

void Core::roll_back(const std::string& policy, uint64_t number, const std::string& who,
                     VersionDone done) {
  // What `done` holds belongs to this thread: the training thread gets a number in its place.
  const uint64_t id = ++last_roll_back_;
  rolling_back_[id] = std::move(done);
  host.roll_back(policy, number, about(policy, "before a rollback, asked by " + who),
                 [this, id, policy, who](Result<WeightsVersion> version) {
                   post_([this, id, policy, who, version = std::move(version)] {
                     rolled_back(id, policy, who, version);
                   });
                 });
}

void Core::rolled_back(uint64_t id, const std::string& policy, const std::string& who,
                       const Result<WeightsVersion>& version) {
  if (version)
    oversight.start_anew(policy, fmt::format("to version {}, by {}", version->number, who));
  auto waiting = rolling_back_.extract(id);
  waiting.mapped()(version);
}

void Core::tick() {
  due_times.heed();
  membership.expire();
  nodes.tick();
  replicator.tick();
  copies.tick();
  checkpoints.tick();
  elastic.tick();
  growth.tick();
  shares.tick();
  const int64_t now_ns = state.clock.boot_ns();
  if (now_ns >= next_retry_ns_) {
    next_retry_ns_ = now_ns + kRetryNs;
    state.owed.retry();
    lifecycle.writes().retry();
    oversight.retry();
    gangs.policies().oversight().retry();
    // Without a write to try, a store that was full would be taken for full for good.
    if (!state.store.trouble().empty())
      state.store.write([now_ns](Db& db) { return records::put_setting(db, "retried_ns", now_ns); },
                        [this](Status) { dispatcher.pump(); });
  }
  history.tick();
  progress.tick();
  lifecycle.end_adopting();
  if (version_interval_ns_ > 0 && now_ns >= next_versions_ns_) keep_versions("at its time");
  dispatcher.pump();
}

std::optional<EndWaits::Wait> Core::when_ended(uint64_t task, std::function<void()> done) {
  if (state.tasks.find(task)) return waits_.add(task, std::move(done));
  done();
  return std::nullopt;
}

void Core::reported(const Task& task, JobPoint report) {
  if (task.rank && state.tasks.find(task.rank->gang))
    gang_losses.merge(task.rank->gang, task.rank->rank, report);
  elastic.reported(task, report);
  growth.reported(task, report);
  shares.reported(task, report);
  gangs.reported(task, report);
  if (report.says_something()) progress.add(task.id, std::move(report));
}

void Core::pump() {
  dispatcher.pump();
  shares.pump();
}

Result<Task> Core::task(uint64_t id) {
  auto told = told_task(state, id);
  if (!told) return tl::unexpected(told.error());
  if (!*told) return fail(ErrorCode::kNotFound, fmt::format("task {} does not exist", id));
  return std::move(**told);
}

}  // namespace tierpilot
