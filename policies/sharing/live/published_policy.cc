#include "policies/sharing/live/published_policy.h"

#include <algorithm>

#include "policies/sharing/live/refusal.h"
#include "policies/sharing/live/taking.h"
#include "policies/sharing/published.h"

namespace tierpilot::sharing {
namespace {

// Best-effort jobs that can end.
uint64_t best_effort_bytes(const LiveUnit& unit) {
  uint64_t bytes = 0;
  for (const auto& job : unit.jobs)
    if (job.job_class == JobClass::kBestEffort && job.share.milli > 0)
      bytes += job.share.memory_bytes;
  return bytes;
}

// Units whose memory will do; others are of no type. `released`: by best-effort jobs, too.
std::vector<PublishedNode> with_memory(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                       bool released) {
  std::vector<PublishedNode> all;
  for (const auto& node : nodes) {
    auto& units = all.emplace_back();
    for (const auto& unit : node) {
      const auto predicted = job.predicted.find(unit.type);
      const uint64_t bytes = unit.free().memory_bytes + (released ? best_effort_bytes(unit) : 0);
      const bool will_do =
          predicted != job.predicted.end() && predicted->second.memory_bytes <= bytes;
      units.push_back({will_do ? unit.type : "", unit.free().milli, unit.best_effort_milli()});
    }
  }
  return all;
}

// So that its share and memory are free.
std::vector<uint64_t> who_ends_for(const Share& share, const LiveUnit& unit) {
  LiveUnit rest = unit;
  const uint32_t missing = share.milli - std::min(share.milli, unit.free().milli);
  auto ends = take_from_best_effort(unit, missing, 0).preempted;
  std::erase_if(rest.jobs, [&](const LiveJob& job) {
    return std::find(ends.begin(), ends.end(), job.id) != ends.end();
  });
  const auto more = who_frees_memory(rest, share.memory_bytes);
  ends.insert(ends.end(), more.begin(), more.end());
  return ends;
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
  const auto published = with_memory(nodes, job, false);
  auto place = place_published(published, need, JobClass::kBestEffort);
  if (place) {
    if (const auto unit = unit_published(published[place->node], need, run_s, job.job_class))
      place->unit = *unit;
  } else if (job.job_class == JobClass::kLatencySensitive) {
    place = place_published(with_memory(nodes, job, true), need, job.job_class);
  }
  if (!place) return std::nullopt;
  const auto& unit = nodes[place->node][place->unit];
  Start start{place->node, place->unit, {}, {}, {}, "the most free share"};
  start.share = {need.at(unit.type), job.predicted.at(unit.type).memory_bytes};
  start.preempted = who_ends_for(start.share, unit);
  if (!start.preempted.empty()) start.reason = "what best-effort jobs held";
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
