// Descriptions of clusters, tiers and workloads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "policies/sim/generator.h"
#include "policies/sim/workload_source.h"

namespace tierpilot::sim {
namespace {

using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "sim_files_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  const std::filesystem::path folder_;
};

constexpr const char* kTiers = R"({"schema": 1, "tiers": [
  {"tier": "dram0", "latency_ns": {"p50": 90.5}, "read_gb_per_s": 12, "copy_gb_per_s": 6,
   "evict_gb_per_s": 1.5, "promote_gb_per_s": 2.5, "evict_start_ns": 4e6, "promote_start_ns": null,
   "promote_start_ns_unavailable": "between memory nodes single pages move, not files"},
  {"tier": "dir0", "latency_ns": {"p50": 30000}}]})";

TEST_F(Files, AClusterOfTwoGroups) {
  write("tiers.json", kTiers);
  const auto path = write("cluster.toml", R"(
name = "pair"
[coordinator]
backlog_units = 4
dispatch_us = 250
[failure_clusters]
probability = 0.25
[checkpoints]
interval_s = 600
[[nodes]]
name = "cpu"
count = 3
units = 8
fast_budget = "2GiB"
tiers = "tiers.json"
evict_gb_per_s = 3.0
[[nodes]]
name = "gpu"
gpus = 4
gpu_type = "a100"
slow_kind = "node"
gpu_mean_between_failures_s = 1e6
)");
  const auto cluster = read_cluster_spec(path);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->node_count(), 4u);
  EXPECT_EQ(cluster->unit_count(), 25u);
  EXPECT_EQ(cluster->coordinator.backlog_units, 4u);
  EXPECT_DOUBLE_EQ(cluster->coordinator.dispatch_s, 250e-6);
  EXPECT_DOUBLE_EQ(cluster->checkpoints.interval_s, 600);
  const auto& tiers = cluster->groups[0].tiers;
  EXPECT_DOUBLE_EQ(tiers.fast_latency_ns, 90.5);
  EXPECT_DOUBLE_EQ(tiers.promote_bytes_per_s, 2.5e9);
  EXPECT_DOUBLE_EQ(tiers.evict_start_s, 4e-3);
  EXPECT_DOUBLE_EQ(tiers.promote_start_s, 0) << "there is none";
  EXPECT_DOUBLE_EQ(tiers.evict_bytes_per_s, 3e9) << "the file's own value wins";
  EXPECT_TRUE(cluster->groups[1].exclusive_tiers);
  EXPECT_DOUBLE_EQ(cluster->groups[1].gpu_failures.mean_between_s, 1e6);
}

TEST_F(Files, EveryFaultIsNamed) {
  const auto cluster =
      parse_cluster_spec("[[nodes]]\ncount = 0\nunitz = 2\nslow_kind = \"tape\"\n", "c.toml", ".");
  ASSERT_FALSE(cluster);
  for (const char* what : {"count", "unitz", "slow_kind"})
    EXPECT_THAT(cluster.error().message, HasSubstr(what));
  EXPECT_FALSE(parse_cluster_spec("", "empty.toml", "."));
  EXPECT_FALSE(parse_cluster_spec("nodes = 3\n", "wrong.toml", "."));
  EXPECT_FALSE(read_cluster_spec(folder_ / "missing.toml"));
}

TEST_F(Files, MoreNodesThanAnIntegerHoldsAreTooMany) {
  std::string text;
  for (int i = 0; i < 4295; ++i) text += "[[nodes]]\ncount = 1000000\n";
  const auto cluster = parse_cluster_spec(text, "many.toml", ".");
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().message, HasSubstr("more than 1000000 nodes"));
}

TEST_F(Files, HostileTiersAreRefused) {
  EXPECT_TRUE(read_tier_speeds(write("good.json", kTiers)));
  for (const char* text :
       {"", "[]", "{", "{\"tiers\": []}", "{\"tiers\": [3]}", "{\"tiers\": {\"0\": 1}}",
        R"({"tiers": [{"latency_ns": {"p50": -1}}]})",
        R"({"tiers": [{"latency_ns": 3, "read_gb_per_s": "x", "evict_gb_per_s": []}]})"})
    EXPECT_FALSE(read_tier_speeds(write("bad.json", text))) << text;
  const auto folder = read_tier_speeds(folder_);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("directory"));
  const auto missing = read_tier_speeds(write("one.json", R"({"tiers": [{"latency_ns": {"p50": 90},
      "read_gb_per_s": 12, "copy_gb_per_s": 6, "evict_gb_per_s": null,
      "evict_gb_per_s_unavailable": "no slower tier", "promote_gb_per_s": 1}]})"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("evict_gb_per_s: unavailable: no slower tier"));
}

TEST_F(Files, AGeneratorsOptions) {
  const auto options = parse_generator_options(
      "[workload]\ntasks = 10\nunits = [1, 4]\nwrite_share = 0.5\nmin_dataset = \"1KiB\"\n", "w");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->tasks, 10u);
  EXPECT_EQ(options->units, (std::vector<int>{1, 4}));
  EXPECT_EQ(options->min_dataset_bytes, 1024u);
  for (const char* wrong :
       {"write_share = 2", "units = []", "units = [0]", "tasks = 0", "min_dataset = 0",
        "min_operations = 1e12", "burst_factor = 50\nburst_share = 0.5", "unknown = 1",
        "gang_share = 1.1", "gang_ranks = [0]",
        "tasks = 1000000\ngang_share = 1\ngang_ranks = [4096]", "gpu_milli = []"})
    EXPECT_FALSE(parse_generator_options(std::string("[workload]\n") + wrong, "w")) << wrong;
}

TEST_F(Files, WorkloadsAreFoundByName) {
  const auto source = open_workload(write("w.toml", "[workload]\ntasks = 10\n"));
  ASSERT_TRUE(source) << source.error().message;
  const ClusterSpec cluster{.groups = {NodeGroup{}}};
  EXPECT_EQ(source->make(cluster, 1)->tasks.size(), 10u);
  EXPECT_FALSE(open_workload("trace:tea-leaves:x"));
  EXPECT_FALSE(open_workload(folder_ / "missing.toml"));
}

GeneratorOptions many() {
  GeneratorOptions options;
  options.tasks = 20'000;
  options.arrivals_per_s = 100;
  return options;
}

TEST(Generator, SeedsRepeat) {
  const auto arrivals = [](uint64_t seed) {
    std::vector<int64_t> at;
    for (const Task& task : generate(many(), {}, seed).tasks) at.push_back(task.arrival_ns);
    return at;
  };
  EXPECT_EQ(arrivals(1), arrivals(1));
  EXPECT_NE(arrivals(1), arrivals(2));
}

double rate_of(const Workload& workload) {
  return static_cast<double>(workload.tasks.size()) /
         (static_cast<double>(workload.tasks.back().arrival_ns) * 1e-9);
}

TEST(Generator, SharesAndRatesAreThoseAskedFor) {
  auto options = many();
  options.write_share = 0.2;
  options.second_share = 0.4;
  options.no_data_share = 0.1;
  options.gpu_share = 0.3;
  options.users = 4;
  const auto workload = generate(options, {}, 5);
  const auto share = [&](auto of) {
    double count = 0;
    for (const Task& task : workload.tasks) count += of(task);
    return count / static_cast<double>(workload.tasks.size());
  };
  EXPECT_NEAR(rate_of(workload), 100, 5);
  EXPECT_NEAR(share([](const Task& t) { return t.use_count == 0; }), 0.1, 0.02);
  EXPECT_NEAR(share([](const Task& t) { return t.gpu_milli > 0; }), 0.3, 0.02);
  EXPECT_NEAR(
      share([&](const Task& t) { return t.use_count > 0 && workload.uses_of(t).back().write; }),
      0.2 * 0.9, 0.02);
  for (const Task& task : workload.tasks) {
    EXPECT_LT(task.user, 4u);
    for (const auto& use : workload.uses_of(task)) ASSERT_LT(use.dataset, options.datasets);
  }
}

TEST(Generator, BurstsKeepTheMeanRate) {
  auto options = many();
  options.tasks = 100'000;
  options.burst_factor = 5;
  options.burst_share = 0.1;
  options.burst_mean_s = 2;
  const auto workload = generate(options, {}, 5);
  EXPECT_NEAR(rate_of(workload), 100, 15);
  // The coefficient of variation of a Poisson process is 1.
  std::vector<double> gaps;
  for (size_t i = 1; i < workload.tasks.size(); ++i)
    gaps.push_back(
        static_cast<double>(workload.tasks[i].arrival_ns - workload.tasks[i - 1].arrival_ns));
  const double mean =
      std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size());
  double squares = 0;
  for (const double gap : gaps) squares += (gap - mean) * (gap - mean);
  EXPECT_GT(std::sqrt(squares / static_cast<double>(gaps.size())) / mean, 1.15);
}

TEST(Generator, PhasesChangeWhatIsPopular) {
  auto options = many();
  options.phase_tasks = 10'000;
  const auto workload = generate(options, {}, 5);
  std::vector<int> first(options.datasets), second(options.datasets);
  for (size_t i = 0; i < workload.tasks.size(); ++i)
    ++(i < 10'000 ? first : second)[workload.uses_of(workload.tasks[i])[0].dataset];
  const auto top = [](const std::vector<int>& counts) {
    return std::max_element(counts.begin(), counts.end()) - counts.begin();
  };
  EXPECT_EQ(top(first), 0);
  EXPECT_NE(top(second), 0);
}

TEST(Generator, OfferedLoadFollowsTheCluster) {
  auto options = many();
  options.arrivals_per_s = 0;
  options.offered_load = 0.5;
  const auto rate = [&](uint32_t nodes) {
    NodeGroup group;
    group.count = nodes;
    return rate_of(generate(options, {.groups = {group}}, 5));
  };
  EXPECT_NEAR(rate(20) / rate(10), 2, 0.01);
}

}  // namespace
}  // namespace tierpilot::sim
