#include "policies/sharing/live/published_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/sharing/live/refusal.h"
#include "policies/sharing/live/taking.h"
#include "policies/sharing/published.h"

namespace tierpilot::sharing {
namespace {

std::vector<PublishedNode> as_published(const std::vector<LiveNode>& nodes) {
  std::vector<PublishedNode> all;
  for (const auto& node : nodes) {
    auto& units = all.emplace_back();
    for (const auto& unit : node)
      units.push_back({unit.type, unit.free().milli, unit.best_effort_milli()});
  }
  return all;
}

// From its start: what was predicted then; what its user was promised, where that is not known.
double promised_s(const LiveJob& job) {
  return job.predicted_s > 0 ? job.predicted_s : job.elapsed_s + job.promise_left_s;
}

}  // namespace

std::optional<Start> PublishedPolicy::place(const std::vector<LiveNode>& nodes,
                                            const WaitingJob& job) {
  UtilisationSet need;
  std::unordered_map<std::string, double> run_s;
  for (const auto& [type, predicted] : job.predicted) {
    need[type] = predicted.milli;
    run_s[type] = predicted.run_s;
  }
  const auto published = as_published(nodes);
  auto place = place_published(published, need, job.job_class);
  if (!place) return std::nullopt;
  if (place->released_milli == 0)
    if (const auto unit = unit_published(published[place->node], need, run_s, job.job_class))
      place->unit = *unit;
  const auto& unit = nodes[place->node][place->unit];
  Start start{place->node, place->unit, {}, {}, {}, "the most free share"};
  start.share = {need.at(unit.type), job.predicted.at(unit.type).memory_bytes};
  if (start.share.milli > unit.free().milli) {
    auto taken = take_from_best_effort(unit, start.share.milli - unit.free().milli, 0);
    start.preempted = std::move(taken.preempted);
    start.reason = "what best-effort jobs held";
  }
  if (start.share.memory_bytes > unit.free().memory_bytes && start.preempted.empty())
    return std::nullopt;
  return start;
}

std::string PublishedPolicy::refusal(const LiveUnit& unit, const WaitingJob& job) const {
  const auto predicted = job.predicted.find(unit.type);
  if (predicted == job.predicted.end()) return kOtherKind;
  return too_small(unit, {predicted->second.milli, predicted->second.memory_bytes});
}

Adjustment PublishedPolicy::adjust(const LiveUnit& unit) {
  Adjustment adjustment;
  uint32_t free = unit.free().milli;
  LiveUnit now = unit;
  for (auto& job : now.jobs) {
    if (job.job_class != JobClass::kLatencySensitive || job.left_s <= 0 ||
        promised_s(job) >= kNoPromise)
      continue;
    const double remaining_s =
        job.left_s / (speed_with(job.share.milli, job.need_milli) * job.kept);
    const uint32_t wanted =
        grown_published(job.share.milli, job.elapsed_s, remaining_s, promised_s(job));
    if (wanted <= job.share.milli) continue;
    const uint32_t step = wanted - job.share.milli;
    if (free < step) {
      const auto taken = take_from_best_effort(now, step - free, kLeastMilli);
      if (free + taken.milli < step) continue;
      for (const auto& [id, milli] : taken.left)
        for (auto& other : now.jobs)
          if (other.id == id) other.share.milli = milli;
      for (const uint64_t id : taken.preempted)
        for (auto& other : now.jobs)
          if (other.id == id) other.share.milli = 0;
      adjustment.milli.insert(adjustment.milli.end(), taken.left.begin(), taken.left.end());
      for (const uint64_t id : taken.preempted)
        adjustment.preempted.push_back({id, "a latency-sensitive job on its unit grows"});
      free += taken.milli;
    }
    free -= step;
    job.share.milli = wanted;
    adjustment.milli.emplace_back(job.id, wanted);
  }
  return adjustment;
}

}  // namespace tierpilot::sharing
