#include "policies/sim/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/config.h"
#include "base/random.h"

namespace tierpilot::sim {
namespace {

// Quiet and burst in turn, both of exponential length (a Markov-modulated Poisson process).
class Arrivals {
 public:
  Arrivals(const GeneratorOptions& options, double per_s, SeededRandom& random)
      : random_(random), bursty_(options.burst_factor > 1) {
    const double share = options.burst_share;
    burst_per_s_ = per_s * options.burst_factor;
    quiet_per_s_ = per_s * (1 - share * options.burst_factor) / (1 - share);
    burst_mean_s_ = options.burst_mean_s;
    quiet_mean_s_ = burst_mean_s_ * (1 - share) / share;
    if (!bursty_) quiet_per_s_ = per_s;
    if (bursty_) change_s_ = random_.exponential(quiet_mean_s_);
  }

  double next_s() {
    while (true) {
      const double per_s = in_burst_ ? burst_per_s_ : quiet_per_s_;
      const double next = per_s > 0 ? now_s_ + random_.exponential(1 / per_s) : change_s_ + 1;
      if (!bursty_ || next <= change_s_) return now_s_ = next;
      now_s_ = change_s_;
      in_burst_ = !in_burst_;
      change_s_ += random_.exponential(in_burst_ ? burst_mean_s_ : quiet_mean_s_);
    }
  }

 private:
  SeededRandom& random_;
  const bool bursty_;
  double burst_per_s_, quiet_per_s_, burst_mean_s_, quiet_mean_s_;
  double now_s_ = 0, change_s_ = 0;
  bool in_burst_ = false;
};

template <class T>
T any_of(const std::vector<T>& values, SeededRandom& random) {
  return values[random.below(values.size())];
}

double mean_of(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double mean_operations(const GeneratorOptions& o) {
  const double low = o.min_operations, high = o.max_operations;
  const double own = high > low ? (high - low) / std::log(high / low) : low;
  const auto small = static_cast<double>(o.min_dataset_bytes);
  const auto large = static_cast<double>(o.max_dataset_bytes);
  const double bytes = large > small ? (large - small) / std::log(large / small) : small;
  return own + o.operations_per_byte * bytes * (1 + o.second_share) * (1 - o.no_data_share);
}

double arrival_rate(const GeneratorOptions& options, const ClusterSpec& cluster) {
  if (options.arrivals_per_s > 0) return options.arrivals_per_s;
  double operations_per_s = 0;
  for (const NodeGroup& group : cluster.groups)
    operations_per_s += static_cast<double>(group.count) * group.units * group.operations_per_s;
  const double ranks = 1 + options.gang_share * (mean_of(options.gang_ranks) - 1);
  return options.offered_load * operations_per_s /
         (mean_operations(options) * mean_of(options.units) * ranks);
}

class Generator {
 public:
  Generator(const GeneratorOptions& options, double arrivals_per_s, uint64_t seed)
      : o_(options),
        random_(derived_seed(seed, "workload")),
        arrivals_(options, arrivals_per_s, random_),
        popularity_(std::max(options.datasets, 1U), options.zipf_exponent),
        users_(options.users, options.user_zipf_exponent),
        ranks_(options.datasets) {}

  Workload make() {
    workload_.name = o_.name;
    workload_.gpu_types = o_.gpu_types;
    for (uint32_t i = 0; i < o_.users; ++i) workload_.users.push_back(fmt::format("user-{}", i));
    for (uint32_t i = 0; i < o_.datasets; ++i)
      workload_.datasets.push_back({static_cast<uint64_t>(random_.log_uniform(
          static_cast<double>(o_.min_dataset_bytes), static_cast<double>(o_.max_dataset_bytes)))});
    std::iota(ranks_.begin(), ranks_.end(), 0U);
    workload_.tasks.reserve(o_.tasks);
    for (uint32_t i = 0; i < o_.tasks; ++i) {
      if (o_.phase_tasks > 0 && i % o_.phase_tasks == 0 && i > 0) shuffle();
      add_task();
    }
    return std::move(workload_);
  }

 private:
  void add_task() {
    Task task;
    task.arrival_ns = static_cast<int64_t>(std::min(arrivals_.next_s() * 1e9, kLastArrivalNs));
    task.operations = random_.log_uniform(o_.min_operations, o_.max_operations);
    task.units = static_cast<uint32_t>(any_of(o_.units, random_));
    task.memory_bytes = o_.memory_bytes;
    task.user = static_cast<uint32_t>(users_.draw(random_));
    if (random_.chance(o_.gpu_share)) {
      task.gpu_milli = static_cast<uint32_t>(any_of(o_.gpu_milli, random_));
      if (!o_.gpu_types.empty())
        task.gpu_type = static_cast<uint16_t>(random_.below(o_.gpu_types.size()));
    }
    task.first_use = static_cast<uint32_t>(workload_.uses.size());
    if (o_.datasets > 0 && !random_.chance(o_.no_data_share)) add_uses();
    task.use_count = static_cast<uint32_t>(workload_.uses.size()) - task.first_use;
    for (const DatasetUse& use : workload_.uses_of(task))
      task.operations +=
          o_.operations_per_byte * static_cast<double>(workload_.datasets[use.dataset].bytes);
    // No draw where there are none: a seed's other tasks stay what they were.
    const bool is_gang = o_.gang_share > 0 && random_.chance(o_.gang_share);
    const int ranks = is_gang ? any_of(o_.gang_ranks, random_) : 1;
    ranks > 1 ? add_gang(task, static_cast<uint32_t>(ranks)) : workload_.tasks.push_back(task);
  }

  // The first writes, the others read the same.
  void add_gang(Task task, uint32_t ranks) {
    task.gang = static_cast<uint32_t>(workload_.gangs.size());
    workload_.gangs.push_back({static_cast<uint32_t>(workload_.tasks.size()), ranks});
    workload_.tasks.push_back(task);
    const auto first_use = static_cast<uint32_t>(workload_.uses.size());
    for (uint32_t u = 0; u < task.use_count; ++u)
      workload_.uses.push_back({workload_.uses[task.first_use + u].dataset, false});
    task.first_use = first_use;
    workload_.tasks.insert(workload_.tasks.end(), ranks - 1, task);
  }

  void add_uses() {
    const bool scans = random_.chance(o_.scan_share);
    const auto draw = [&] {
      return scans ? scanned_++ % o_.datasets : ranks_[popularity_.draw(random_)];
    };
    const uint32_t first = draw();
    workload_.uses.push_back({first, false});
    if (random_.chance(o_.second_share))
      if (const uint32_t second = draw(); second != first)
        workload_.uses.push_back({second, false});
    workload_.uses.back().write = random_.chance(o_.write_share);
  }

  void shuffle() {  // Fisher-Yates
    for (size_t i = ranks_.size(); i > 1; --i) std::swap(ranks_[i - 1], ranks_[random_.below(i)]);
  }

  const GeneratorOptions& o_;
  SeededRandom random_;
  Arrivals arrivals_;
  const Zipf popularity_, users_;
  std::vector<uint32_t> ranks_;  // by popularity
  uint32_t scanned_ = 0;
  Workload workload_;
};

void check_ranges(ConfigSection& section, const GeneratorOptions& o) {
  if (o.min_dataset_bytes == 0 || o.max_dataset_bytes < o.min_dataset_bytes)
    section.complain("max_dataset", "must be no smaller than min_dataset, which is over 0");
  if (o.max_operations < o.min_operations)
    section.complain("max_operations", "must be no smaller than min_operations");
  if (o.burst_share * o.burst_factor > 1)
    section.complain("burst_factor", "times burst_share must not exceed 1");
  const auto positive = [](const std::vector<int>& list) {
    return !list.empty() && *std::min_element(list.begin(), list.end()) > 0;
  };
  if (!positive(o.units)) section.complain("units", "must be one number or more, each over 0");
  if (!positive(o.gang_ranks) || *std::max_element(o.gang_ranks.begin(), o.gang_ranks.end()) > 4096)
    section.complain("gang_ranks", "must be one number or more, each within 1 and 4096");
  constexpr double kMostRanks = 100'000'000;  // as tasks
  if (positive(o.gang_ranks) &&
      o.tasks * (1 + o.gang_share * (mean_of(o.gang_ranks) - 1)) > kMostRanks)
    section.complain("gang_ranks", "with so many tasks makes more than 100000000 ranks");
  if (!positive(o.gpu_milli))
    section.complain("gpu_milli", "must be one number or more, each over 0");
}

Result<GeneratorOptions> options_of(ConfigReader reader) {
  GeneratorOptions o;
  auto s = reader.section("workload");
  const auto count = [&](std::string_view key, uint32_t& value, int64_t min) {
    value = static_cast<uint32_t>(s.integer(key, value, min, 100'000'000));
  };
  const auto number = [&](std::string_view key, double& value, double min, double max) {
    value = s.number(key, value, min, max);
  };
  const auto share = [&](std::string_view key, double& value) { number(key, value, 0, 1); };
  o.name = s.text("name", o.name);
  count("tasks", o.tasks, 1);
  number("arrivals_per_s", o.arrivals_per_s, 0, 1e9);
  number("offered_load", o.offered_load, 1e-6, 1000);
  number("burst_factor", o.burst_factor, 1, 1e6);
  number("burst_share", o.burst_share, 1e-6, 0.999);
  number("burst_mean_s", o.burst_mean_s, 1e-6, 1e9);
  count("datasets", o.datasets, 0);
  o.min_dataset_bytes = s.bytes("min_dataset", o.min_dataset_bytes);
  o.max_dataset_bytes = s.bytes("max_dataset", o.max_dataset_bytes);
  number("zipf_exponent", o.zipf_exponent, 0, 10);
  count("phase_tasks", o.phase_tasks, 0);
  share("scan_share", o.scan_share);
  share("second_share", o.second_share);
  share("no_data_share", o.no_data_share);
  share("write_share", o.write_share);
  number("min_operations", o.min_operations, 1, 1e24);
  number("max_operations", o.max_operations, 1, 1e24);
  number("operations_per_byte", o.operations_per_byte, 0, 1e12);
  o.units = s.id_list("units", o.units);
  o.memory_bytes = s.bytes("memory", o.memory_bytes);
  share("gpu_share", o.gpu_share);
  o.gpu_milli = s.id_list("gpu_milli", o.gpu_milli);
  o.gpu_types = s.texts("gpu_types", o.gpu_types);
  share("gang_share", o.gang_share);
  o.gang_ranks = s.id_list("gang_ranks", o.gang_ranks);
  count("users", o.users, 1);
  number("user_zipf_exponent", o.user_zipf_exponent, 0, 10);
  check_ranges(s, o);
  if (auto status = reader.finish(); !status) return tl::unexpected(status.error());
  return o;
}

}  // namespace

Result<GeneratorOptions> read_generator_options(const std::filesystem::path& path) {
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  return options_of(std::move(*reader));
}

Result<GeneratorOptions> parse_generator_options(std::string_view toml, std::string origin) {
  auto reader = ConfigReader::parse(toml, std::move(origin));
  if (!reader) return tl::unexpected(reader.error());
  return options_of(std::move(*reader));
}

Workload generate(const GeneratorOptions& options, const ClusterSpec& cluster, uint64_t seed) {
  return Generator(options, arrival_rate(options, cluster), seed).make();
}

}  // namespace tierpilot::sim
