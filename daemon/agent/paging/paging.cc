#include "daemon/agent/paging/paging.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/memory/paging/kernel_settings.h"

namespace tierpilot::agent {
namespace {

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

std::string describe(const TierSet& set) {
  std::string text;
  for (const auto& tier : set.tiers)
    text += fmt::format("{}{} ({:.0f} ns)", text.empty() ? "" : ", ", tier.name, tier.latency_ns);
  return fmt::format("{}; latencies: {}", text, set.latency_source);
}

bool equal(const TierSet& a, const TierSet& b) {
  return std::equal(a.tiers.begin(), a.tiers.end(), b.tiers.begin(), b.tiers.end(),
                    [](const auto& x, const auto& y) {
                      return x.nodes == y.nodes && x.latency_ns == y.latency_ns;
                    });
}

struct MeasuredNode {
  double latency_ns = 0;
  double uncertainty = 0;  // share of it
  int id = 0;
};

// A single round says nothing of its spread.
double uncertainty(const TierMeasurement& tier) {
  constexpr double kUnknown = 0.5;
  const auto seen = tier.evidence.find("latency_ns");
  return seen == tier.evidence.end() || seen->second.rounds < 2 ? kUnknown : seen->second.spread;
}

std::vector<MetricValue> figures(const PagingState& state, size_t conflicts) {
  const auto& counters = state.counters;
  uint64_t failed = 0;
  for (const auto& [err, pages] : counters.failed_pages) failed += pages;
  const auto count = [](auto value) { return static_cast<double>(value); };
  return {{"placement_watched_processes", count(state.watched)},
          {"placement_unwatched_processes", count(state.unwatched)},
          {"placement_rounds", count(counters.rounds)},
          {"placement_slowed_rounds", count(counters.slowed_rounds)},
          {"placement_promoted_bytes", count(counters.promoted_bytes)},
          {"placement_demoted_bytes", count(counters.demoted_bytes)},
          {"placement_advised_bytes", count(counters.advised_bytes)},
          {"placement_failed_pages", count(failed)},
          {"placement_cpu_s", seconds(counters.cpu_ns)},
          {"placement_tracker_cpu_s", seconds(counters.tracker_cpu_ns)},
          {"placement_conflicts", count(conflicts)}};
}

}  // namespace

TierSet paging_tiers(const Topology& topology, const Calibration& calibration) {
  std::vector<MeasuredNode> nodes;
  for (const auto& tier : calibration.tiers)
    if (!tier.tier.is_directory() && tier.latency_p50_ns.value)
      nodes.push_back({*tier.latency_p50_ns.value, uncertainty(tier), tier.tier.numa_node});
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a.latency_ns < b.latency_ns; });
  std::map<int, double> measured_ns;
  const MeasuredNode* first = nullptr;  // of a tier
  for (const auto& node : nodes) {
    const double doubt = first ? std::max(first->uncertainty, node.uncertainty) : 0;
    if (!first || node.latency_ns > first->latency_ns * (1 + doubt)) first = &node;
    measured_ns[node.id] = first->latency_ns;
  }
  return make_paging_tiers(topology, measured_ns);
}

Paging::Paging(const PagingConfig& config, const PagingEnvironment& environment, TierSet tiers)
    : config_(config), environment_(environment), tiers_(std::move(tiers)) {
  begin();
}

Paging::~Paging() = default;

std::string Paging::why_off() const {
  if (!config_.enabled) return "off in the configuration";
  if (tiers_.tiers.size() < 2)
    return fmt::format("one memory tier{}: there is nowhere to move pages to",
                       tiers_.tiers.empty() ? "" : ", " + describe(tiers_));
  return {};
}

void Paging::begin() {
  if (const auto why = why_off(); !why.empty()) {
    spdlog::info("placement: off: {}", why);
    return;
  }
  look_around();
  thread_ = std::jthread([this, tiers = tiers_.tiers](std::stop_token stop) { run(stop, tiers); });
  for (const auto& [attempt, task] : tasks_)
    post([task](PagingWorker& worker) { worker.task_started(task); });
}

void Paging::look_around() {
  const auto trackers = environment_.make_trackers()->offers();
  bool damon = false;
  std::string reasons;
  for (const auto& offer : trackers) {
    if (config_.tracker && offer.traits.kind != *config_.tracker) continue;
    const auto name = tracker_name(offer.traits.kind);
    if (offer.available) {
      damon = offer.traits.kind == TrackerKind::kDamon;
      tracker_ = fmt::format("tracker {}", name);
      if (!offer.way.empty()) tracker_ += " " + offer.way;
      if (!offer.traits.ranks_pages && !config_.tracker)
        tracker_ += ", by which moves are only advised: it does not see all accesses alike";
      break;
    }
    reasons +=
        fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, offer.available.error().message);
  }
  if (tracker_.empty()) tracker_ = "static placement only, as there is no heat tracker";
  if (!reasons.empty()) tracker_ += " (" + reasons + ")";
  conflicts_ =
      find_conflicts(read_kernel_settings(environment_.sysroot), PagingMode::kEnforce, damon);
  spdlog::info("placement: on: {}; {}", describe(tiers_), tracker_);
  for (const auto& conflict : conflicts_) spdlog::warn("placement: {}", conflict);
}

void Paging::set_tiers(TierSet tiers) {
  if (equal(tiers, tiers_)) return;
  tiers_ = std::move(tiers);
  if (thread_.joinable())
    post([tiers = tiers_.tiers](PagingWorker& worker) { worker.set_tiers(tiers); });
  else if (why_off().empty())
    begin();
}

void Paging::task_started(const PlacedTask& task) {
  tasks_[task.attempt] = task;
  if (thread_.joinable()) post([task](PagingWorker& worker) { worker.task_started(task); });
}

void Paging::task_ended(AttemptId attempt) {
  tasks_.erase(attempt);
  if (thread_.joinable()) post([attempt](PagingWorker& worker) { worker.task_ended(attempt); });
}

void Paging::post(Work work) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back(std::move(work));
  wake_.notify_one();
}

void Paging::run(std::stop_token stop, std::vector<PagingTier> tiers) {
  PagingWorker worker(config_, environment_, std::move(tiers));
  int64_t due_ns = 0;
  while (!stop.stop_requested()) {
    std::vector<Work> inbox;
    {
      std::unique_lock lock(mutex_);
      const auto has_mail = [this] { return !inbox_.empty(); };
      const int64_t wait_ns = due_ns - environment_.pacer.boot_ns();
      if (due_ns == PagingWorker::kNever)
        wake_.wait(lock, stop, has_mail);
      else if (wait_ns > 0)
        wake_.wait_for(lock, stop, std::chrono::nanoseconds(wait_ns), has_mail);
      inbox.swap(inbox_);
    }
    if (stop.stop_requested()) return;
    for (const auto& work : inbox) work(worker);
    due_ns = worker.step(stop);
    const std::lock_guard lock(state_mutex_);
    state_ = worker.state();
  }
}

SubjectState Paging::feature() const {
  const auto why = why_off();
  if (!why.empty()) return {.subject = "placement", .on = false, .reason = why};
  auto reason = fmt::format("{}; {}", describe(tiers_), tracker_);
  for (const auto& conflict : conflicts_) reason += "; conflict: " + conflict;
  return {.subject = "placement", .on = true, .reason = reason};
}

std::vector<MetricValue> Paging::metrics() const {
  const auto why = why_off();
  PagingState state;
  {
    const std::lock_guard lock(state_mutex_);
    state = state_;
  }
  auto values = figures(state, conflicts_.size());
  if (!state.tracker.empty())
    values.push_back({fmt::format("placement_tracker_{}", state.tracker), 1.0});
  if (why.empty()) return values;
  for (auto& value : values) value.value = fail(ErrorCode::kUnavailable, why);
  return values;
}

}  // namespace tierpilot::agent
