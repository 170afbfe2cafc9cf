#include "policies/sim/sharing/time_bound.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "policies/sim/sharing/running_jobs.h"

namespace tierpilot::sharing {
namespace {

constexpr double kRounded = 1e-6;  // of times, that a simulation adds up in many steps

double least_run_s(const TimedJob& job) {
  return std::max(0.0, job.run_s * (1 - kRounded) - kDone_s);
}

// All parts of a job that asks for a promise.
struct Asked {
  double arrival_s = 0, end_s = 0;  // when it is to be done
  uint64_t types = kAnyModel;
  std::vector<const TimedJob*> parts;

  bool can_be_kept_alone() const {
    return std::all_of(parts.begin(), parts.end(), [&](const TimedJob* part) {
      return least_run_s(*part) <= end_s - arrival_s;
    });
  }
  // Of one unit: what is left of its work at best at that time, all before having been as fast as
  // it can. What runs without a share is not counted.
  double left_s(double at_s) const {
    const double ran_s = std::max(0.0, at_s - arrival_s) + kLeastSpeed * (end_s - arrival_s);
    double sum_s = 0;
    for (const auto* part : parts)
      sum_s += std::max(0.0, least_run_s(*part) - ran_s) * part->need_milli / kWholeUnit;
    return sum_s;
  }
};

// Moore's rule: jobs in the order in which they are to be done; where one is late the longest of
// them is given up. No choice of jobs has fewer late ones.
class Late {
 public:
  explicit Late(double units) : units_(units) {}

  // `seconds` of a unit within the first `within_s`. How many are late by now.
  uint32_t add(double seconds, double within_s) {
    longest_.push(seconds);
    sum_s_ += seconds;
    if (sum_s_ > units_ * within_s * (1 + kRounded)) {
      sum_s_ -= longest_.top();
      longest_.pop();
      ++late_;
    }
    return late_;
  }

 private:
  double units_, sum_s_ = 0;
  std::priority_queue<double> longest_;
  uint32_t late_ = 0;
};

// Why it is a bound: whatever was done before a start, what a job has left_s() of has to be done
// from there to its end, on units that do a second's work in a second, and then no choice has fewer
// late ones. A job has one end, so spans beside each other have none in common: what is late adds.
uint32_t late_at_least(const std::vector<Asked>& by_end, double units) {
  std::set<double> starts;
  for (const auto& job : by_end) starts.insert(job.arrival_s);
  std::vector<uint32_t> late(by_end.size() + 1, 0);  // of the first so many
  size_t first = 0;                                  // to be done after the start
  for (const double start_s : starts) {
    for (; first < by_end.size() && by_end[first].end_s <= start_s; ++first)
      late[first + 1] = std::max(late[first + 1], late[first]);
    Late from_start(units);
    for (size_t i = first; i < by_end.size(); ++i) {
      const auto more = from_start.add(by_end[i].left_s(start_s), by_end[i].end_s - start_s);
      late[i + 1] = std::max(late[i + 1], late[first] + more);
    }
  }
  return *std::max_element(late.begin(), late.end());
}

std::vector<Asked> promises_of(const TimedWorkload& workload) {
  std::map<uint64_t, Asked> by_job;
  for (const auto& part : workload.jobs) {
    if (part.promise_s >= kNoPromise) continue;
    auto& job = by_job[part.whole_id()];
    job.arrival_s = part.arrival_s;
    job.end_s = part.arrival_s + part.promise_s;
    job.types = part.types;
    job.parts.push_back(&part);
  }
  std::vector<Asked> all;
  for (auto& [id, job] : by_job) all.push_back(std::move(job));
  std::stable_sort(all.begin(), all.end(),
                   [](const Asked& a, const Asked& b) { return a.end_s < b.end_s; });
  return all;
}

double units_of(const TimedWorkload& workload, uint64_t types) {
  if (workload.type_of.empty()) return (types & 1) != 0 ? workload.units : 0;
  return static_cast<double>(
      std::count_if(workload.type_of.begin(), workload.type_of.end(),
                    [types](uint8_t type) { return (types >> type & 1) != 0; }));
}

double best_effort_least_s(const TimedWorkload& workload) {
  std::map<uint64_t, double> by_job;
  for (const auto& part : workload.jobs)
    if (part.job_class == JobClass::kBestEffort)
      by_job[part.whole_id()] = std::max(by_job[part.whole_id()], least_run_s(part));
  double sum_s = 0;
  for (const auto& [id, run_s] : by_job) sum_s += run_s;
  return by_job.empty() ? 0 : sum_s / static_cast<double>(by_job.size());
}

// As if each ran from its arrival on.
double best_effort_most_units(const TimedWorkload& workload) {
  if (workload.jobs.empty()) return 0;
  const double last_arrival_s = workload.jobs.back().arrival_s;
  double sum_s = 0;
  for (const auto& job : workload.jobs)
    if (job.job_class == JobClass::kBestEffort)
      sum_s += std::min(job.run_s, last_arrival_s - job.arrival_s) * job.need_milli / kWholeUnit;
  return std::min<double>(workload.units, sum_s / std::max(last_arrival_s, 1e-9));
}

}  // namespace

TimedBound bound_of(const TimedWorkload& workload) {
  TimedBound bound{.best_effort_mean_s = best_effort_least_s(workload),
                   .best_effort_units = best_effort_most_units(workload)};
  auto promises = promises_of(workload);
  bound.asked = static_cast<uint32_t>(promises.size());
  std::erase_if(promises, [](const Asked& job) { return !job.can_be_kept_alone(); });
  std::set<uint64_t> types{kAnyModel};
  for (const auto& job : promises) types.insert(job.types);
  uint32_t late = 0;
  for (const uint64_t among : types) {
    std::vector<Asked> only_there;
    for (const auto& job : promises)
      if ((job.types & ~among) == 0) only_there.push_back(job);
    late = std::max(late, late_at_least(only_there, units_of(workload, among)));
  }
  bound.kept = static_cast<uint32_t>(promises.size()) - late;
  return bound;
}

}  // namespace tierpilot::sharing
