#include "daemon/memory/loop/paging_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "daemon/memory/loop/tiers.h"
#include "daemon/memory/loop/watched.h"

namespace tierpilot {
namespace {

constexpr double kNsPerS = 1e9;
constexpr uint64_t kStrideBytes = 2 * kHugePageBytes;
constexpr int64_t kPatienceNs = 1'000'000'000;   // with a tracker that then does not answer
constexpr int64_t kPaceAfterNs = 2'000'000'000;  // kernel threads' CPU time is told in ticks

MoverOptions mover_options(const LoopOptions& options) {
  MoverOptions mover = options.mover;
  mover.bytes_per_s = options.bytes_per_s;
  mover.full_node_pause_ns = 0;  // the loop plans around full nodes
  return mover;
}

// The next moves of a plan, some MiB of them, taken off it and sorted into groups of one process
// and tier: few calls of the kernel instead of one for each. What goes down still goes first.
std::vector<std::vector<PageMove>> take_stride(std::span<const PageMove>& plan) {
  std::vector<std::vector<PageMove>> groups;
  uint64_t bytes = 0;
  while (!plan.empty() && bytes < kStrideBytes) {
    const auto& move = plan.front();
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front().pid == move.pid && group.front().to_tier == move.to_tier;
    });
    (known == groups.end() ? groups.emplace_back() : *known).push_back(move);
    bytes += move.bytes;
    plan = plan.subspan(1);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.front().to_tier > b.front().to_tier;
  });
  return groups;
}

// Whether the tier had no room. For hugetlbfs's largest pages the kernel has a pool of their own,
// whose end says nothing of the tier.
bool is_full(const PageMove& move, const MoveResult& result) {
  return move.page_bytes <= kHugePageBytes && result.pages_failed.count(ENOMEM) > 0;
}

}  // namespace

PagingLoop::PagingLoop(LoopEnvironment environment, LoopOptions options)
    : environment_(std::move(environment)),
      options_(options),
      mover_(environment_.kernel, environment_.pacer, mover_options(options)),
      last_round_ns_(environment_.pacer.boot_ns()),
      cpu_credit_(options.cpu_share, options.cpu_burst_ns),
      kept_(environment_.tiers.size()) {}

PagingLoop::~PagingLoop() = default;

Status PagingLoop::add(const LoopTarget& target) {
  const std::lock_guard lock(mutex_);
  for (const auto& watched : targets_)
    if (watched->target.pid == target.pid)
      return fail(ErrorCode::kConflict, fmt::format("process {} is watched already", target.pid));
  auto watched = std::make_unique<Watched>();
  watched->target = target;
  if (target.group.policy != PagingPolicy::kStatic) {
    auto tracker = environment_.trackers.make(target.pid);
    if (!tracker) return tl::unexpected(tracker.error());
    if (auto status = (*tracker)->start(); !status) return status;
    const bool trusted = (*tracker)->traits().ranks_pages || options_.trust_any_tracker;
    if (!trusted && target.mode == PagingMode::kEnforce) watched->target.mode = PagingMode::kAdvise;
    watched->tracker = std::move(*tracker);
  }
  watched->heat = HeatMap(options_.heat);
  watched->sampled_ns = environment_.pacer.boot_ns();
  targets_.push_back(std::move(watched));
  return {};
}

void PagingLoop::remove(pid_t pid) {
  const std::lock_guard lock(mutex_);
  std::erase_if(targets_, [&](const auto& watched) {
    if (watched->target.pid != pid) return false;
    gone_tracker_cpu_ns_ += watched->tracker_cpu_ns();
    return true;
  });
}

bool PagingLoop::watches(pid_t pid) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(targets_.begin(), targets_.end(),
                     [pid](const auto& watched) { return watched->target.pid == pid; });
}

LoopCounters PagingLoop::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::vector<TargetView> PagingLoop::view() const {
  const std::lock_guard lock(mutex_);
  std::vector<TargetView> views;
  for (const auto& watched : targets_)
    views.push_back({.target = watched->target,
                     .regions = {watched->heat.regions().begin(), watched->heat.regions().end()},
                     .chunks = watched->chunks,
                     .tracked_bytes = watched->heat.tracked_bytes(),
                     .heat_map_bytes = watched->heat.memory_bytes(),
                     .trouble = watched->trouble});
  return views;
}

std::vector<PagingTier> PagingLoop::tiers() const {
  const std::lock_guard lock(mutex_);
  return environment_.tiers;
}

MovePlan PagingLoop::latest_plan() const {
  const std::lock_guard lock(mutex_);
  return latest_plan_;
}

MovePlan PagingLoop::latest_advice() const {
  const std::lock_guard lock(mutex_);
  return latest_advice_;
}

Status PagingLoop::refresh_mappings(Watched& watched, int64_t now_ns) {
  if (watched.mappings_ns != 0 && now_ns - watched.mappings_ns < options_.mappings_interval_ns)
    return {};
  const auto mappings = read_mappings(environment_.sysroot, watched.target.pid);
  if (!mappings) return tl::unexpected(mappings.error());
  // A zombie has none.
  if (mappings->empty())
    return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", watched.target.pid));
  watched.ranges = trackable_ranges(*mappings, options_.ranges);
  watched.heat.track(watched.ranges);
  watched.mappings_ns = now_ns;
  return {};
}

Status PagingLoop::sample(Watched& watched, int64_t now_ns, const std::optional<Error>& silent) {
  const auto seen = refresh_mappings(watched, now_ns)
                        .and_then([&] { return watched.look(silent); })
                        .and_then([&](const std::vector<AccessSample>& samples) {
                          const double elapsed_s =
                              static_cast<double>(now_ns - watched.sampled_ns) / kNsPerS;
                          watched.heat.update(samples, elapsed_s);
                          watched.sampled_ns = now_ns;
                          watched.chunks = cut_chunks(watched.heat.regions(), watched.target.pid, 0,
                                                      options_.chunks, watched.evidence(elapsed_s));
                          return locate_chunks(environment_.kernel, environment_.tiers,
                                               watched.chunks, options_.chunks, counters_.rounds);
                        });
  watched.trouble = seen ? "" : seen.error().message;
  watched.ended = !seen && seen.error().code == ErrorCode::kNotFound;
  // Plans need to know where pages are.
  if (!seen) watched.chunks.clear();
  watched.forget_refused(now_ns);
  return seen;
}

void PagingLoop::refresh_tiers() {
  auto& tiers = environment_.tiers;
  refresh_free_bytes(environment_.sysroot, tiers);
  for (size_t t = 0; t < tiers.size(); ++t)
    if (environment_.pacer.boot_ns() < kept_[t].until_ns)
      tiers[t].free_bytes -= std::min(tiers[t].free_bytes, kept_[t].bytes);
  if (environment_.refresh_tiers) environment_.refresh_tiers(tiers);
}

// What is free of a tier that takes no more pages is kept for the kernel's own use: its watermarks
// differ by zone, and rise when memory is fragmented.
void PagingLoop::note_full(size_t tier) {
  auto tiers = environment_.tiers;
  refresh_free_bytes(environment_.sysroot, tiers);
  kept_[tier] = {tiers[tier].free_bytes, environment_.pacer.boot_ns() + options_.refused_pause_ns};
}

void PagingLoop::sample_all(std::stop_token stop) {
  refresh_tiers();
  // Who lets one wait in vain would let each of the others: all are watched by the same.
  std::optional<Error> silent;
  for (auto& watched : targets_) {
    if (stop.stop_requested()) break;
    const int64_t now_ns = environment_.pacer.boot_ns();
    const auto seen = sample(*watched, now_ns, silent);
    const bool waited = environment_.pacer.boot_ns() - now_ns > kPatienceNs;
    if (!seen && seen.error().code == ErrorCode::kUnreachable && waited) silent = seen.error();
    if (!silent) pace_tracker(*watched, environment_.pacer.boot_ns());
  }
  counters_.ended_targets += std::erase_if(targets_, [&](const auto& watched) {
    if (watched->ended) gone_tracker_cpu_ns_ += watched->tracker_cpu_ns();
    return watched->ended;
  });
}

PagingInput PagingLoop::make_input(PagingMode mode) const {
  PagingInput input{.tiers = environment_.tiers, .limits = options_.limits};
  for (const auto& watched : targets_) {
    if (watched->target.mode != mode) continue;
    const auto known =
        std::find_if(input.groups.begin(), input.groups.end(),
                     [&](const auto& group) { return group.name == watched->target.group.name; });
    const auto index = static_cast<size_t>(known - input.groups.begin());
    if (known == input.groups.end()) input.groups.push_back(watched->target.group);
    for (auto chunk : watched->chunks) {
      chunk.group = index;
      input.chunks.push_back(chunk);
    }
  }
  return input;
}

MovePlan PagingLoop::plan(PagingMode mode) {
  auto input = make_input(mode);
  if (input.chunks.empty()) return {};
  input.balance = balance_[mode];
  uint64_t largest = 0;
  for (const auto& chunk : input.chunks) largest = std::max(largest, chunk.resident_bytes());
  input.limits.move_bytes = mode == PagingMode::kEnforce
                                ? round_budget(environment_.pacer.boot_ns(), largest)
                                : UINT64_MAX;
  auto plan = plan_moves(input);
  if (!plan) {
    spdlog::error("{}", plan.error().message);
    return {};
  }
  balance_[mode] = plan->balance;
  return std::move(*plan);
}

// What the rate cap and the CPU budget allow. Unused bytes are kept until the largest chunk and
// what makes room for it can move, or it never would.
uint64_t PagingLoop::round_budget(int64_t now_ns, uint64_t largest_chunk_bytes) {
  const double elapsed_s =
      static_cast<double>(std::max<int64_t>(now_ns - last_round_ns_, options_.interval_ns)) /
      kNsPerS;
  double bytes = 1e18;
  if (options_.bytes_per_s > 0) bytes = static_cast<double>(options_.bytes_per_s) * elapsed_s;
  if (cpu_credit_.limited())
    bytes = std::min(bytes, static_cast<double>(cpu_credit_.left_ns()) / cpu_ns_per_moved_byte_);
  const uint64_t carried =
      std::min(carried_bytes_, std::max(4 * kHugePageBytes, 2 * largest_chunk_bytes));
  carried_bytes_ = static_cast<uint64_t>(bytes) + carried;
  return carried_bytes_;
}

void PagingLoop::account(const PageMove& move, const MoveResult& result) {
  const std::lock_guard lock(mutex_);
  (move.to_tier < move.from_tier ? counters_.promoted_bytes : counters_.demoted_bytes) +=
      result.bytes_moved;
  for (const auto& [err, pages] : result.pages_failed) counters_.failed_pages[err] += pages;
  // A tier without room is no fault of the memory's.
  const bool refused = result.pages_failed.size() > (is_full(move, result) ? 1 : 0);
  if (result.bytes_moved > 0 || !refused) return;
  for (auto& watched : targets_)
    if (watched->target.pid == move.pid)
      watched->refusals.push_back(
          {move.start, move.end, environment_.pacer.boot_ns() + options_.refused_pause_ns});
}

void PagingLoop::carry_out(const MovePlan& plan, std::stop_token stop) {
  const int64_t cpu_before_ns = environment_.pacer.thread_cpu_ns();
  uint64_t moved = 0;
  std::span<const PageMove> left(plan.moves);
  while (!left.empty() && !stop.stop_requested()) {
    const int64_t cpu_ns = environment_.pacer.thread_cpu_ns() - cpu_before_ns;
    if (!cpu_credit_.covers(cpu_ns)) break;
    const auto stride = take_stride(left);
    bool full = false;
    for (const auto& moves : stride) full |= !carry_out_alike(moves, stop, moved);
    if (full) break;
  }
  carried_bytes_ -= std::min(carried_bytes_, moved);
  if (moved < kHugePageBytes) return;
  const auto cost_ns = static_cast<double>(environment_.pacer.thread_cpu_ns() - cpu_before_ns);
  cpu_ns_per_moved_byte_ =
      std::max((cpu_ns_per_moved_byte_ + cost_ns / static_cast<double>(moved)) / 2, 0.01);
}

// Moves of one process to one tier. False when the tier took nothing more: without room for what is
// to come up, nothing need go down for it, and the next plan knows more.
bool PagingLoop::carry_out_alike(std::span<const PageMove> moves, std::stop_token stop,
                                 uint64_t& moved) {
  std::vector<MoveRequest> requests;
  for (const auto& move : moves)
    requests.push_back({.pid = move.pid,
                        .start = move.start,
                        .end = move.end,
                        .page_bytes = move.page_bytes,
                        .nodes = environment_.tiers[move.to_tier].nodes});
  const auto results = mover_.move_all(requests, std::move(stop));
  // An ended process is noticed, and told, by the next sample.
  if (!results && results.error().code != ErrorCode::kNotFound)
    spdlog::warn("{}", results.error().message);
  if (!results) return true;
  bool full = false;
  for (size_t i = 0; i < moves.size(); ++i) {
    const auto& result = (*results)[i];
    account(moves[i], result);
    moved += result.bytes_moved;
    full |= result.bytes_moved == 0 && is_full(moves[i], result);
  }
  if (full) note_full(moves.front().to_tier);
  return !full;
}

int64_t PagingLoop::tracker_cpu_ns() const {
  int64_t sum = gone_tracker_cpu_ns_;
  for (const auto& watched : targets_) sum += watched->tracker_cpu_ns();
  return sum;
}

void PagingLoop::pace_tracker(Watched& watched, int64_t now_ns) {
  const int64_t elapsed_ns = now_ns - watched.paced_ns;
  if (!watched.tracker || options_.cpu_share <= 0 || elapsed_ns < kPaceAfterNs) return;
  const int64_t cpu_ns = watched.tracker_cpu_ns();
  const double used = static_cast<double>(cpu_ns - watched.paced_cpu_ns),
               allowed = options_.cpu_share / 2 / static_cast<double>(targets_.size()) *
                         static_cast<double>(elapsed_ns);
  const bool first = watched.paced_ns == 0;
  watched.paced_ns = now_ns;
  watched.paced_cpu_ns = cpu_ns;
  if (!first && used > 0 && (used > allowed || used < allowed / 2))
    watched.tracker->scale_effort(std::clamp(allowed / used, 0.1, 2.0));
}

int64_t PagingLoop::run_round(std::stop_token stop) {
  const int64_t began_ns = environment_.pacer.boot_ns();
  const int64_t cpu_ns = environment_.pacer.thread_cpu_ns();
  MovePlan plan_now;
  int64_t tracker_ns = 0;
  {
    const std::lock_guard lock(mutex_);
    ++counters_.rounds;
    sample_all(stop);
    latest_plan_ = plan_now = plan(PagingMode::kEnforce);
    latest_advice_ = plan(PagingMode::kAdvise);
    counters_.planned_moves += plan_now.moves.size();
    counters_.advised_bytes = latest_advice_.bytes();
    tracker_ns = tracker_cpu_ns() - counters_.tracker_cpu_ns;
    counters_.tracker_cpu_ns += tracker_ns;
  }
  const int64_t elapsed_ns = began_ns - std::exchange(last_round_ns_, began_ns);
  carry_out(plan_now, stop);
  const int64_t own_ns = environment_.pacer.thread_cpu_ns() - cpu_ns;
  const std::lock_guard lock(mutex_);
  counters_.cpu_ns += own_ns;
  const int64_t pause_ns =
      std::max(options_.interval_ns, cpu_credit_.settle(own_ns, tracker_ns, elapsed_ns));
  counters_.slowed_rounds += pause_ns > options_.interval_ns;
  return began_ns + pause_ns;
}

void PagingLoop::run(std::stop_token stop) {
  while (environment_.pacer.sleep_until(run_round(stop), stop)) {
  }
}

}  // namespace tierpilot
