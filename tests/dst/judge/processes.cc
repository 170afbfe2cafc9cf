#include "tests/dst/judge/processes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::dst {

bool Processes::lives(const Run& run) const {
  const auto runs = by_task_.find(run.task);
  return runs != by_task_.end() && runs->second.contains(run);
}

bool Processes::runs(uint64_t task, uint32_t attempt) const {
  const auto known = by_task_.find(task);
  return known != by_task_.end() &&
         std::any_of(known->second.begin(), known->second.end(),
                     [&](const Run& run) { return run.attempt == attempt; });
}

bool Processes::is_sure(int node, int64_t now_ns) const {
  const auto until = unsure_until_ns_.find(node);
  return until == unsure_until_ns_.end() || now_ns > until->second;
}

void Processes::meet(const Run& run, const Run& other, const char* invariant, int64_t now_ns) {
  if (is_sure(run.node, now_ns) && is_sure(other.node, now_ns))
    violated_(
        invariant,
        fmt::format("task {} attempt {} runs on n{} while task {} attempt {} runs on n{}", run.task,
                    run.attempt, run.node + 1, other.task, other.attempt, other.node + 1));
  else
    excused_.insert({run, other, invariant});
}

// A rank runs again with the others of its gang; a machine that stood still may begin what has gone
// on elsewhere.
void Processes::look_whether_again(const Run& run, int64_t now_ns) {
  const auto kept = kept_.find(run.task);
  if (kept == kept_.end() || !is_sure(run.node, now_ns)) return;
  const auto& [before, at_ns] = kept->second;
  if (!is_leased_since(before.node, at_ns)) return;
  violated_("ran-again", fmt::format("task {} attempt {} begins on n{}, and attempt {} came to its "
                                     "end {:.3f} s before, which is on disk on n{}",
                                     run.task, run.attempt, run.node + 1, before.attempt,
                                     static_cast<double>(now_ns - at_ns) / 1e9, before.node + 1));
}

bool Processes::has_ended_well(uint64_t task) const {
  const auto first = ended_well_.lower_bound({task, 0});
  return first != ended_well_.end() && first->first == task;
}

bool Processes::has_gang_ended_well(uint64_t gang, uint32_t ranks) const {
  for (auto at = well_.lower_bound({gang, 0}); at != well_.end() && at->first.first == gang; ++at)
    if (at->second.size() >= ranks) return true;
  return false;
}

void Processes::began(const Run& run, int64_t now_ns, uint64_t gang) {
  tell_(fmt::format("task {} attempt {} runs on n{}", run.task, run.attempt, run.node + 1));
  on_began(gang != 0 ? gang : run.task);
  for (const auto& other : by_task_[run.task]) meet(run, other, "overlap", now_ns);
  by_task_[run.task].insert(run);
  if (is_sure(run.node, now_ns) && (is_told(run.task) || (gang != 0 && is_told(gang))))
    violated_("ran-again", fmt::format("task {} attempt {} begins on n{}, and was told to have "
                                       "ended",
                                       run.task, run.attempt, run.node + 1));
  if (gang == 0) return look_whether_again(run, now_ns);
  gangs_[run.task] = gang;
  for (const auto& other : by_gang_[gang])
    if (other.attempt != run.attempt) meet(run, other, "half-gang", now_ns);
  by_gang_[gang].insert(run);
}

void Processes::ended(const Run& run, bool well) {
  tell_(fmt::format("task {} attempt {} on n{} is over", run.task, run.attempt, run.node + 1));
  by_task_[run.task].erase(run);
  if (well) ended_well_.insert({run.task, run.attempt});
  const auto gang = gangs_.find(run.task);
  if (gang == gangs_.end()) return;
  by_gang_[gang->second].erase(run);
  if (well) well_[{gang->second, run.attempt}].insert(run.task);
}

void Processes::look(int64_t now_ns) {
  for (auto pair = excused_.begin(); pair != excused_.end();) {
    const bool both = lives(pair->one) && lives(pair->other);
    if (both && is_sure(pair->one.node, now_ns) && is_sure(pair->other.node, now_ns))
      meet(pair->one, pair->other, pair->invariant.c_str(), now_ns);
    pair = both ? std::next(pair) : excused_.erase(pair);
  }
}

void Processes::gang_ended(uint64_t gang, uint32_t attempt, uint32_t ranks, bool well,
                           int64_t now_ns) {
  for (const auto& run : by_gang_[gang])
    if (is_sure(run.node, now_ns))
      violated_("half-gang",
                fmt::format("gang {} has ended, and its rank {} attempt {} runs on n{}", gang,
                            run.task, run.attempt, run.node + 1));
  const size_t ended_well = well_[{gang, attempt}].size();
  if (well && ended_well < ranks)
    violated_("half-gang", fmt::format("gang {} has succeeded, and of its {} ranks only {} have",
                                       gang, ranks, ended_well));
}

}  // namespace tierpilot::dst
