#include "policies/quality/greedy_allocators.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "policies/quality/fair_share.h"
#include "policies/quality/gain_curve.h"

namespace tierpilot::quality {
namespace {

std::vector<size_t> sorted_by(std::span<const JobState> jobs,
                              const std::function<double(size_t)>& key) {
  std::vector<double> keys(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) keys[i] = key(i);
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

// Unit by unit to whom `gain(job, cores)`, the worth of the next unit, is highest.
void fill_greedily(std::span<const JobState> jobs, double unit, double left,
                   std::vector<double>& given, const std::function<double(size_t, double)>& gain) {
  struct Bid {
    double gain;
    size_t job;
    bool operator<(const Bid& other) const {
      return std::tie(gain, other.job) < std::tie(other.gain, job);
    }
  };
  std::priority_queue<Bid> bids;
  for (size_t i = 0; i < jobs.size(); ++i)
    if (given[i] > 0 && given[i] + unit <= jobs[i].max_cores) bids.push({gain(i, given[i]), i});
  while (!bids.empty() && left >= unit) {
    const size_t i = bids.top().job;
    bids.pop();
    given[i] += unit;
    left -= unit;
    if (given[i] + unit <= jobs[i].max_cores) bids.push({gain(i, given[i]), i});
  }
}

// One unit each, by arrival; returns what is left.
double one_each(std::span<const JobState> jobs, double unit, double left,
                std::vector<double>& given) {
  for (const size_t i : sorted_by(jobs, [&](size_t j) { return jobs[j].arrival_s; })) {
    if (left < unit || jobs[i].max_cores < unit) continue;
    given[i] = unit;
    left -= unit;
  }
  return left;
}

class Fair : public Allocator {
 public:
  explicit Fair(bool weighted) : weighted_(weighted) {}
  std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) override {
    return fair_shares(jobs, cores.total, weighted_);
  }

 private:
  bool weighted_;
};

class QualityPublished : public Allocator {
 public:
  std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) override {
    const double unit = std::max(cores.unit, 1.0);
    std::vector<double> given(jobs.size());
    const double left = one_each(jobs, unit, cores.total, given);
    fill_greedily(jobs, unit, left, given, [&](size_t i, double has) {
      return predicted_gain(jobs[i], cores.period_s, has + unit, 0) -
             predicted_gain(jobs[i], cores.period_s, has, 0);
    });
    return given;
  }
};

class MaxThroughput : public Allocator {
 public:
  std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) override {
    const double unit = std::max(cores.unit, 1.0);
    std::vector<double> given(jobs.size());
    const double left = one_each(jobs, unit, cores.total, given);
    fill_greedily(jobs, unit, left, given, [&](size_t i, double has) {
      return jobs[i].throughput ? speed_on(jobs[i], has + unit) - speed_on(jobs[i], has) : 0;
    });
    return given;
  }
};

class ShortestRemaining : public Allocator {
 public:
  std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) override {
    std::vector<double> given(jobs.size());
    double left = cores.total;
    for (const size_t i : sorted_by(jobs, [&](size_t j) { return remaining_s(jobs[j]); })) {
      given[i] = std::min(left, jobs[i].max_cores);
      left -= given[i];
    }
    return given;
  }

 private:
  // Until its predicted loss is within a fiftieth of its largest change of where it goes. Unknown
  // jobs come first: they are soon known.
  static double remaining_s(const JobState& job) {
    constexpr double kConverged = 0.02;
    constexpr double kFarthest = 32;  // times what was done so far
    if (!job.predictor || job.largest_change <= 0 || job.one_core_s <= 0) return 0;
    const double done = std::max(job.iterations, 1.0);
    const auto last = job.predictor->at(job.iterations + kFarthest * done);
    for (double ahead = done / 8; ahead < kFarthest * done; ahead *= 1.5) {
      const auto then = job.predictor->at(job.iterations + ahead);
      if (then && last && then->loss - last->loss < kConverged * job.largest_change)
        return ahead * job.one_core_s / (job.throughput ? speed_on(job, job.max_cores) : 1);
    }
    return kFarthest * done * job.one_core_s;
  }
};

}  // namespace

std::unique_ptr<Allocator> make_fair(bool weighted) {
  return std::make_unique<Fair>(weighted);
}
std::unique_ptr<Allocator> make_quality_published() {
  return std::make_unique<QualityPublished>();
}
std::unique_ptr<Allocator> make_srtf() {
  return std::make_unique<ShortestRemaining>();
}
std::unique_ptr<Allocator> make_max_throughput() {
  return std::make_unique<MaxThroughput>();
}

}  // namespace tierpilot::quality
