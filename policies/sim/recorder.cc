#include "policies/sim/recorder.h"

#include <algorithm>
#include <boost/sort/spreadsort/float_sort.hpp>
#include <cmath>
#include <numeric>

namespace tierpilot::sim {

Spread spread_of(std::vector<float>& values) {
  if (values.empty()) return {};
  boost::sort::spreadsort::float_sort(values.begin(), values.end());
  const auto rank = [&](double q) {
    const auto at = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
    return static_cast<double>(values[std::max<size_t>(at, 1) - 1]);
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), rank(0.5), rank(0.99)};
}

Recorder::Recorder(const Workload& workload) : users_(std::max<size_t>(workload.users.size(), 1)) {
  counts.tasks = workload.jobs();
  waits_s_.reserve(counts.tasks);
  responses_s_.reserve(counts.tasks);
  if (!workload.tasks.empty())
    first_ns_ = last_ns_ = last_end_ns_ = next_sample_ns_ = workload.tasks.front().arrival_ns;
}

void Recorder::passed(int64_t now_ns, size_t queued, uint64_t busy_units, uint64_t total_units) {
  const UnitNs ns = now_ns - last_ns_;
  busy_unit_ns_ += ns * static_cast<UnitNs>(busy_units);
  unit_ns_ += ns * static_cast<UnitNs>(total_units);
  last_ns_ = now_ns;
  for (; next_sample_ns_ <= now_ns; next_sample_ns_ += sample_every_ns_) {
    auto& samples = counts.samples;
    samples.push_back({static_cast<double>(next_sample_ns_ - first_ns_) * 1e-9,
                       static_cast<uint32_t>(queued), static_cast<uint32_t>(busy_units)});
    if (samples.size() < RunResult::kMostSamples) continue;
    // Every other one stays, at twice the distance.
    for (size_t i = 0; i < samples.size() / 2; ++i) samples[i] = samples[2 * i];
    samples.resize(samples.size() / 2);
    next_sample_ns_ -= sample_every_ns_;
    sample_every_ns_ *= 2;
  }
}

void Recorder::served(const Service& service) {
  counts.hit_bytes += service.hit_bytes;
  counts.promoted_bytes += service.promoted_bytes;
  counts.fetched_bytes += service.fetched_bytes;
  counts.evicted_bytes += service.evicted_bytes;
  counts.evicted_written_bytes += service.evicted_written_bytes;
}

void Recorder::rewarded(double reward) {
  ++counts.rewards;
  reward_sum_ += reward;
}

void Recorder::finished(const Task& task, int64_t started_ns, int64_t now_ns, double alone_s) {
  const double response_s = static_cast<double>(now_ns - task.arrival_ns) * 1e-9;
  waits_s_.push_back(static_cast<float>(static_cast<double>(started_ns - task.arrival_ns) * 1e-9));
  responses_s_.push_back(static_cast<float>(response_s));
  User& user = users_[std::min<size_t>(task.user, users_.size() - 1)];
  user.slowdown_sum += response_s / alone_s;
  ++user.tasks;
  last_end_ns_ = now_ns;
  busy_until_end_ = busy_unit_ns_;
  units_until_end_ = unit_ns_;
  ++counts.succeeded;
}

double Recorder::fairness() const {
  double sum = 0, squares = 0;
  uint64_t users = 0;
  for (const User& user : users_) {
    if (user.tasks == 0) continue;
    const double mean = user.slowdown_sum / static_cast<double>(user.tasks);
    sum += mean;
    squares += mean * mean;
    ++users;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(users) * squares) : 1;
}

RunResult Recorder::result() {
  RunResult result = std::move(counts);
  result.wait_s = spread_of(waits_s_);
  result.response_s = spread_of(responses_s_);
  result.responses_s = std::move(responses_s_);
  if (units_until_end_ > 0)
    result.utilisation =
        static_cast<double>(busy_until_end_) / static_cast<double>(units_until_end_);
  result.makespan_s = static_cast<double>(last_end_ns_ - first_ns_) * 1e-9;
  result.fairness = fairness();
  if (result.rewards > 0) result.reward_mean = reward_sum_ / static_cast<double>(result.rewards);
  return result;
}

}  // namespace tierpilot::sim
