#include "policies/sim/model/dataset_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tierpilot::sim {
namespace {

// Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014). Eight bytes of
// state: every user has one.
class SplitMix64 {
 public:
  using result_type = uint64_t;
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }
  uint64_t operator()() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

bool chance(SplitMix64& random, double probability) {
  return std::generate_canonical<double, 53>(random) < probability;
}

double log_normal(SplitMix64& random, double median, double sigma) {
  return std::lognormal_distribution<double>(std::log(median), sigma)(random);
}

// Ranks 0 to n-1 with probabilities in proportion to 1 / (rank + 1)^slope, for any n up to a
// largest.
class Zipf {
 public:
  Zipf(size_t largest, double slope) {
    double sum = 0;
    for (size_t rank = 0; rank < largest; ++rank)
      sums_.push_back(sum += std::pow(static_cast<double>(rank + 1), -slope));
  }
  uint32_t draw(uint32_t n, SplitMix64& random) const {
    const double at = std::generate_canonical<double, 53>(random) * sums_[n - 1];
    const auto found = std::upper_bound(sums_.begin(), sums_.begin() + n, at);
    return static_cast<uint32_t>(std::min<ptrdiff_t>(found - sums_.begin(), n - 1));
  }

 private:
  std::vector<double> sums_;
};

struct Owner {
  SplitMix64 random;
  uint32_t first = 0;  // its datasets: [first, first + count)
  uint32_t count = 0;
  std::vector<uint32_t> last;  // what its task before used
};

class Modeller {
 public:
  Modeller(Workload& workload, const DatasetModel& model) : workload_(workload), model_(model) {}

  void run() {
    make_owners();
    const auto most = std::ranges::max_element(owners_, {}, &Owner::count);
    const Zipf zipf(std::max(most->count, model_.shared_datasets), model_.zipf_slope);
    for (Task& task : workload_.tasks) give(task, zipf);
  }

 private:
  // Owner 0 stands for what is shared; user u is owner u + 1.
  void make_owners() {
    std::vector<uint64_t> tasks(workload_.users.size() + 1);
    for (const Task& task : workload_.tasks) ++tasks[task.user + 1];
    for (size_t i = 0; i < tasks.size(); ++i) {
      SplitMix64 mixed(model_.seed ^ (i * 0xd1342543de82ef95));
      Owner owner{SplitMix64(mixed()), static_cast<uint32_t>(workload_.datasets.size()), 0, {}};
      const double wanted = static_cast<double>(tasks[i]) / model_.tasks_per_dataset;
      owner.count =
          i == 0 ? model_.shared_datasets : std::max<uint32_t>(static_cast<uint32_t>(wanted), 1);
      for (uint32_t n = 0; n < owner.count; ++n) workload_.datasets.push_back({size(owner.random)});
      owners_.push_back(std::move(owner));
    }
  }

  uint64_t size(SplitMix64& random) const {
    const double bytes = log_normal(random, model_.median_bytes, model_.sigma);
    return static_cast<uint64_t>(std::clamp(bytes, static_cast<double>(model_.min_bytes),
                                            static_cast<double>(model_.max_bytes)));
  }

  void give(Task& task, const Zipf& zipf) {
    Owner& owner = owners_[task.user + 1];
    if (owner.last.empty() || !chance(owner.random, model_.repeat)) draw_uses(owner, zipf);
    task.first_use = static_cast<uint32_t>(workload_.uses.size());
    task.use_count = static_cast<uint32_t>(owner.last.size());
    for (const uint32_t dataset : owner.last) workload_.uses.push_back({dataset, false});
    auto& first = workload_.uses[task.first_use];
    first.write = chance(owner.random, model_.write) && first.dataset >= owner.first;
    if (task.memory_bytes == 0 && model_.memory_median_bytes > 0)
      task.memory_bytes = static_cast<uint64_t>(std::min(
          log_normal(owner.random, model_.memory_median_bytes, model_.memory_sigma) * task.units,
          1e18));
  }

  void draw_uses(Owner& owner, const Zipf& zipf) {
    owner.last.clear();
    do {
      const bool shared = model_.shared_datasets > 0 && chance(owner.random, model_.shared);
      const Owner& from = shared ? owners_[0] : owner;
      const uint32_t dataset = from.first + zipf.draw(from.count, owner.random);
      if (std::ranges::find(owner.last, dataset) == owner.last.end()) owner.last.push_back(dataset);
    } while (owner.last.size() < model_.max_per_task && chance(owner.random, model_.another));
  }

  Workload& workload_;
  const DatasetModel& model_;
  std::vector<Owner> owners_;
};

struct Bound {
  const char* name;
  double value, min, max;
};

Status check(const DatasetModel& model) {
  constexpr double kMaxBytes = 1e18;
  const Bound bounds[] = {
      {"tasks_per_dataset", model.tasks_per_dataset, 0.001, 1e12},
      {"shared_datasets", static_cast<double>(model.shared_datasets), 0, 1e6},
      {"zipf_slope", model.zipf_slope, 0, 10},
      {"repeat", model.repeat, 0, 1},
      {"shared", model.shared, 0, 1},
      {"another", model.another, 0, 0.99},
      {"max_per_task", static_cast<double>(model.max_per_task), 1, 64},
      {"write", model.write, 0, 1},
      {"median_bytes", model.median_bytes, 1, kMaxBytes},
      {"sigma", model.sigma, 0, 10},
      {"min_bytes", static_cast<double>(model.min_bytes), 1, static_cast<double>(model.max_bytes)},
      {"max_bytes", static_cast<double>(model.max_bytes), 1, kMaxBytes},
      {"memory_median_bytes", model.memory_median_bytes, 0, kMaxBytes},
      {"memory_sigma", model.memory_sigma, 0, 10}};
  for (const auto& [name, value, min, max] : bounds)
    if (!(value >= min && value <= max))
      return fail(ErrorCode::kInvalid, fmt::format("dataset model: {} is {}: it must be within {} "
                                                   "and {}",
                                                   name, value, min, max));
  return {};
}

}  // namespace

Status add_datasets(Workload& workload, const DatasetModel& model) {
  if (auto good = check(model); !good) return good;
  constexpr double kMaxDatasets = 1e8;
  const double datasets = static_cast<double>(workload.tasks.size()) / model.tasks_per_dataset +
                          static_cast<double>(workload.users.size());
  if (datasets > kMaxDatasets)
    return fail(ErrorCode::kExhausted,
                fmt::format("dataset model: tasks_per_dataset {} makes more than {} datasets",
                            model.tasks_per_dataset, kMaxDatasets));
  Modeller(workload, model).run();
  return {};
}

}  // namespace tierpilot::sim
