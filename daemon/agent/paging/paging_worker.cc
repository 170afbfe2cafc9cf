#include "daemon/agent/paging/paging_worker.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace tierpilot::agent {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr size_t kMaxProcesses = 32'768;
// A search of /proc takes at most one in so many parts of a core.
constexpr int64_t kScanShare = 200;
// A process that has just begun has no memory yet.
constexpr int64_t kSettleNs = 500 * kNsPerMs;

bool same_nodes(const std::vector<PagingTier>& a, const std::vector<PagingTier>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.nodes == y.nodes; });
}

bool same_target(const LoopTarget& a, const LoopTarget& b) {
  return a.mode == b.mode && a.group.name == b.group.name && a.group.policy == b.group.policy &&
         a.group.static_tier == b.group.static_tier &&
         a.group.fast_budget_bytes == b.group.fast_budget_bytes;
}

void add_counters(LoopCounters& sum, const LoopCounters& more) {
  sum.rounds += more.rounds;
  sum.slowed_rounds += more.slowed_rounds;
  sum.promoted_bytes += more.promoted_bytes;
  sum.demoted_bytes += more.demoted_bytes;
  sum.planned_moves += more.planned_moves;
  sum.advised_bytes = more.advised_bytes;
  sum.ended_targets += more.ended_targets;
  for (const auto& [err, pages] : more.failed_pages) sum.failed_pages[err] += pages;
  sum.cpu_ns += more.cpu_ns;
  sum.tracker_cpu_ns += more.tracker_cpu_ns;
}

LoopOptions loop_options(const PagingConfig& config) {
  LoopOptions options;
  options.interval_ns = config.interval_ms * kNsPerMs;
  options.bytes_per_s = config.bytes_per_s;
  options.cpu_share = config.cpu_share;
  options.trust_any_tracker = config.tracker.has_value();
  return options;
}

// For groups without heat, where there is no tracker.
class NoTrackers final : public TrackerSource {
 public:
  explicit NoTrackers(Error why) : why_(std::move(why)) {}
  TrackerOffer offer() const override { return {}; }
  Status open() override { return tl::unexpected(why_); }
  Result<std::unique_ptr<HeatTracker>> make(pid_t) override { return tl::unexpected(why_); }

 private:
  const Error why_;
};

}  // namespace

// The loop and what it works with, in the order of making.
struct PagingWorker::Engine {
  std::unique_ptr<TrackerChoice> choice;
  std::unique_ptr<NoTrackers> none;
  TrackerSource* trackers = nullptr;
  std::unique_ptr<LoadedLatencyProbe> loaded_latency;  // null: no rule balances
  std::unique_ptr<PagingLoop> loop;
};

PagingWorker::PagingWorker(const PagingConfig& config, const PagingEnvironment& environment,
                           std::vector<PagingTier> tiers)
    : config_(config), environment_(environment), tiers_(std::move(tiers)) {}

PagingWorker::~PagingWorker() = default;

void PagingWorker::task_started(const PlacedTask& task) {
  tasks_[task.attempt] = task;
  hurry();
}

// The loop notices by itself that its processes are gone.
void PagingWorker::task_ended(AttemptId attempt) {
  tasks_.erase(attempt);
}

void PagingWorker::hurry() {
  const int64_t soon_ns = environment_.pacer.boot_ns() + kSettleNs;
  next_scan_ns_ = std::min(next_scan_ns_, std::max(soon_ns, earliest_scan_ns_));
}

void PagingWorker::set_tiers(std::vector<PagingTier> tiers) {
  const bool same = same_nodes(tiers, tiers_);
  tiers_ = std::move(tiers);
  if (same) return;
  watched_.clear();
  drop_engine();
  next_scan_ns_ = 0;
}

bool PagingWorker::has_anything_to_find() const {
  return tiers_.size() > 1 && (!tasks_.empty() || !config_.rules.empty());
}

int64_t PagingWorker::step(std::stop_token stop) {
  const int64_t began_ns = environment_.pacer.boot_ns();
  if (began_ns >= next_scan_ns_) {
    const int64_t cpu_ns = environment_.pacer.thread_cpu_ns();
    scan();
    const int64_t cost_ns = environment_.pacer.thread_cpu_ns() - cpu_ns;
    earliest_scan_ns_ = began_ns + cost_ns * kScanShare;
    next_scan_ns_ = kNever;
    if (has_anything_to_find())
      next_scan_ns_ = std::max(began_ns + config_.scan_interval_ms * kNsPerMs, earliest_scan_ns_);
  }
  if (!engine_) return next_scan_ns_;
  if (environment_.pacer.boot_ns() >= next_round_ns_)
    next_round_ns_ = engine_->loop->run_round(stop);
  return std::min(next_scan_ns_, next_round_ns_);
}

void PagingWorker::scan() {
  TargetChoice choice;
  if (has_anything_to_find()) {
    const auto processes = scan_processes(environment_.sysroot, kMaxProcesses);
    choice = choose_targets({.sysroot = environment_.sysroot,
                             .processes = processes,
                             .tasks = tasks_,
                             .rules = config_.rules,
                             .tiers = tiers_,
                             .self = ::getpid()});
  }
  for (const auto& note : choice.notes) tell(note);
  drop_unwanted(choice.targets);
  unwatched_ = 0;
  gave_way_.clear();
  for (const auto& target : choice.targets)
    if (const auto watched = watched_.find(target.loop.pid); watched != watched_.end())
      watched->second.resident_bytes = target.resident_bytes;
    else if (!gave_way_.contains(target.loop.pid))
      add(target);
  unwatched_ += gave_way_.size();
  if (watched_.empty()) drop_engine();
}

void PagingWorker::drop_unwanted(const std::vector<PagingTarget>& wanted) {
  std::erase_if(watched_, [&](const auto& item) {
    const auto& [pid, watched] = item;
    if (!engine_->loop->watches(pid)) return true;
    const bool stays = std::any_of(wanted.begin(), wanted.end(), [&](const auto& target) {
      return target.loop.pid == pid && target.started_ticks == watched.started_ticks &&
             same_target(target.loop, watched.target);
    });
    if (!stays) engine_->loop->remove(pid);
    return !stays;
  });
}

void PagingWorker::add(const PagingTarget& target) {
  if (!engine_) make_engine();
  auto status = engine_->loop->add(target.loop);
  if (!status && status.error().code == ErrorCode::kExhausted && smallest_gives_way_to(target))
    status = engine_->loop->add(target.loop);
  if (status) {
    watched_[target.loop.pid] = {target.loop, target.started_ticks, target.resident_bytes};
    return;
  }
  // It ended between the scan and now.
  if (status.error().code == ErrorCode::kNotFound) return;
  ++unwatched_;
  tell(status.error().message);
}

// Where no more can be watched: one that is much larger is worth beginning anew.
bool PagingWorker::smallest_gives_way_to(const PagingTarget& target) {
  constexpr uint64_t kMuchLarger = 2;
  auto smallest = watched_.end();
  for (auto at = watched_.begin(); at != watched_.end(); ++at) {
    if (at->second.target.group.policy == PagingPolicy::kStatic) continue;  // needs no tracker
    if (smallest == watched_.end() || at->second.resident_bytes < smallest->second.resident_bytes)
      smallest = at;
  }
  if (smallest == watched_.end() ||
      target.resident_bytes < kMuchLarger * smallest->second.resident_bytes)
    return false;
  engine_->loop->remove(smallest->first);
  gave_way_.insert(smallest->first);
  watched_.erase(smallest);
  return true;
}

void PagingWorker::make_engine() {
  auto engine = std::make_unique<Engine>();
  engine->choice = environment_.make_trackers();
  if (auto chosen = engine->choice->choose(config_.tracker)) {
    engine->trackers = *chosen;
  } else {
    engine->none = std::make_unique<NoTrackers>(chosen.error());
    engine->trackers = engine->none.get();
  }
  const bool balances = std::any_of(config_.rules.begin(), config_.rules.end(), [](const auto& r) {
    return r.group.policy == PagingPolicy::kBalance;
  });
  if (balances) engine->loaded_latency = std::make_unique<LoadedLatencyProbe>(tiers_);
  engine->loop = std::make_unique<PagingLoop>(
      LoopEnvironment{.sysroot = environment_.sysroot,
                      .pacer = environment_.pacer,
                      .kernel = environment_.kernel,
                      .trackers = *engine->trackers,
                      .tiers = tiers_,
                      .refresh_tiers =
                          [this, probe = engine->loaded_latency.get()](auto& tiers) {
                            for (size_t t = 0; t < tiers.size(); ++t)
                              tiers[t].latency_ns = tiers_[t].latency_ns;
                            if (probe) probe->refresh(tiers);
                          }},
      loop_options(config_));
  next_round_ns_ = 0;
  engine_ = std::move(engine);
}

void PagingWorker::drop_engine() {
  if (!engine_) return;
  add_counters(gone_, engine_->loop->counters());
  engine_.reset();
}

void PagingWorker::tell(const std::string& trouble) {
  if (trouble == trouble_) return;
  trouble_ = trouble;
  spdlog::warn("placement: {}", trouble);
}

PagingState PagingWorker::state() const {
  PagingState state{
      .watched = watched_.size(), .unwatched = unwatched_, .trouble = trouble_, .counters = gone_};
  if (!engine_) return state;
  if (!engine_->none) state.tracker = tracker_name(engine_->trackers->offer().traits.kind);
  add_counters(state.counters, engine_->loop->counters());
  return state;
}

}  // namespace tierpilot::agent
