// The simulator against the truth: quickstart's workload run by real daemons, and simulated with
// the tiers that were measured around each run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "policies/placement/registry.h"
#include "tests/support/long_form.h"
#include "tests/system/truth/real_cluster.h"
#include "tests/system/truth/simulated_twin.h"

namespace tierpilot::test {
namespace {

constexpr double kTolerance = 0.15;
constexpr double kShareTolerance = 0.1;  // decisions depend a little on how fast tasks end
// Of the CPUs, by others or by the host: real times mean nothing then.
constexpr double kBusyShare = 0.08;
// Of the tasks, by standstills of the disk.
constexpr double kMostDisturbed = 0.4;
// A policy that is out in one run is judged by the median of so many.
constexpr size_t kRunsOfDoubt = 3;
// Of all policies together: each takes half a minute.
constexpr int kMostRepeats = 4;
// One that sees nothing, and one that sees loads and data and may wait.
const std::set<std::string> kUnlike{"random", "delay-finish"};

// As tools/quickstart.
constexpr ClusterSize kQuickstartCluster{.nodes = 3, .fast_mib = 96, .slow_mib = 2048};
constexpr int kQuickstartTasks = 300;
constexpr double kQuickstartRate = 12.5;  // tasks a second
constexpr int kFewestTasks = 150;         // of a run in which they come more slowly
constexpr int kFirstTasks = 20;           // tell how fast the machine computes now
// Of the CPUs, by what tasks compute. On a machine so slow that quickstart's rate is more, they
// come more slowly: queues multiply what is not known of a real run.
constexpr double kMostLoad = 0.35;

Argv quickstart_load(int tasks, double rate) {  // the same datasets for any number and rate
  return {"--tasks",    std::to_string(tasks),
          "--rate",     fmt::format("{:.3f}", rate),
          "--datasets", "24",
          "--min-size", "4MiB",
          "--max-size", "32MiB",
          "--seed",     "1"};
}

double rate_for(const RealRun& seen) {
  const double task_s = seen.tasks_cpu_s() / static_cast<double>(seen.tasks.size());
  return std::min(kQuickstartRate, kMostLoad * std::thread::hardware_concurrency() / task_s);
}

// For about as long as quickstart's.
int tasks_at(double rate) {
  return std::max(kFewestTasks, static_cast<int>(kQuickstartTasks * rate / kQuickstartRate));
}

sim::ClusterSpec simulated_cluster(const ClusterSize& size, const sim::TierSpeeds& tiers) {
  sim::NodeGroup group;
  group.count = static_cast<uint32_t>(size.nodes);
  group.units = 1;
  group.operations_per_s = sim::kReferenceOperationsPerSecond;
  group.fast_budget_bytes = size.fast_mib << 20;
  group.slow_budget_bytes = size.slow_mib << 20;
  group.tiers = tiers;
  group.shared_cores = std::thread::hardware_concurrency();
  return {.name = "this machine", .groups = {group}};
}

std::vector<PolicyInfo> policies_of_this_run() {
  std::vector<PolicyInfo> policies;
  for (const auto& module : placement_modules())
    if (!module.learning && (long_form() || kUnlike.contains(module.info.name)))
      policies.push_back(module.info);
  return policies;
}

// What the simulation gives more than the real run.
struct Difference {
  double response = 0;  // as a part of the real one
  double local_share = 0;

  bool holds() const {
    return std::abs(response) <= kTolerance && std::abs(local_share) <= kShareTolerance;
  }
};

double median(std::vector<Difference> seen, double Difference::*what) {
  std::sort(seen.begin(), seen.end(),
            [what](const auto& a, const auto& b) { return a.*what < b.*what; });
  return (seen[(seen.size() - 1) / 2].*what + seen[seen.size() / 2].*what) / 2;
}

// Pairs of runs, one after the other on one cluster. Throws where something fails.
class Pairs {
 public:
  const CpuTime& idle() const { return idle_; }
  const std::string& disturbances() const { return disturbances_; }

  // Empty where nothing can be told by that run.
  std::optional<Difference> compare(const std::string& policy) {
    const auto before = speeds_;
    cluster_.use(policy);
    const auto load = quickstart_load(tasks_at(rate_), rate_);
    const auto real = cluster_.run(load);
    fmt::print("{:16} {:.1f} tasks a second\n", policy, rate_);
    rate_ = rate_for(real);
    speeds_ = cluster_.measured_speeds();
    take_slow_tier(before, speeds_, spec_.groups.front().tiers);
    if (const auto why = useless(real); !why.empty()) {
      disturbances_ += fmt::format("{}{}: {}", disturbances_.empty() ? "" : "; ", policy, why);
      return std::nullopt;
    }
    const auto twin = simulate_twin(at_speed_of(real, *first_, spec_), policy, plan_of(load), real,
                                    int32_to_float_);
    return difference(policy, real, twin);
  }

 private:
  static Json plan_of(const Argv& load) {
    Argv plan{"-j", "plan"};
    plan.insert(plan.end(), load.begin(), load.end());
    return output_of("TIERPILOT_TEST_TIERLOAD", plan);
  }

  std::string useless(const RealRun& real) {
    if (const double others = real.used.others_share(); others > kBusyShare)
      return fmt::format("others took {:.0f} % of the CPUs", others * 100);
    if (const double stolen = real.used.stolen_share(); stolen > kBusyShare)
      return fmt::format("the host took {:.0f} % of the CPUs", stolen * 100);
    const auto all = real.tasks.size(), disturbed = real.disturbed().size();
    if (static_cast<double>(disturbed) > kMostDisturbed * static_cast<double>(all))
      return fmt::format("standstills of the disk met {} of {} tasks", disturbed, all);
    // The first run tells what the daemons' own steps cost; the others are foreseen.
    if (first_) return "";
    if (!take_costs(real, smallest_, idle_, spec_))
      return "hardly any task met no other, so what the daemons' steps take is not known";
    first_ = real;
    return "";
  }

  // Of the same tasks in both.
  static Difference difference(const std::string& policy, const RealRun& real, const Twin& twin) {
    const auto disturbed = real.disturbed();
    const auto real_mean = mean_without(disturbed, real_parts(real.tasks));
    const auto twin_mean = mean_without(disturbed, twin.tasks);
    const Difference difference{twin_mean.response_s() / real_mean.response_s() - 1,
                                twin.local_byte_share() - real.local_byte_share()};
    fmt::print(
        "{:16} real      {}, {:.3f} local; without {} tasks; others took {:.1f} % of the CPUs, the "
        "host {:.1f} %\n"
        "{:+15.1f}% simulated {}, {:.3f} local\n",
        policy, real_mean.text(), real.local_byte_share(), disturbed.size(),
        real.used.others_share() * 100, real.used.stolen_share() * 100, difference.response * 100,
        twin_mean.text(), twin.local_byte_share());
    return difference;
  }

  RealCluster cluster_{kQuickstartCluster};
  const CpuTime idle_ = cluster_.idle();
  const RealRun smallest_ = cluster_.run(quickstart_load(1, kQuickstartRate));  // hardly a task
  double rate_ = rate_for(cluster_.run(quickstart_load(kFirstTasks, kQuickstartRate / 3)));
  const double int32_to_float_ = cluster_.int32_to_float();
  sim::TierSpeeds speeds_ = cluster_.measured_speeds();  // the last look
  sim::ClusterSpec spec_ = simulated_cluster(kQuickstartCluster, speeds_);
  std::optional<RealRun> first_;
  std::string disturbances_;
};

TEST(SimulationTruth, BytesAndMeanResponsesAreThoseOfQuickstartsRealRun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "under TSan hardly any task meets no other: what the daemons' steps take cannot "
                  "be told";
#endif
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  ::sync();  // what others have left to be written
  Pairs pairs;
  if (!pairs.idle().is_left_alone())
    GTEST_SKIP() << fmt::format("others use {:.0f} % of the CPUs: nothing can be measured",
                                pairs.idle().others_share() * 100);
  std::string not_compared;
  int repeats = 0;
  for (const PolicyInfo& policy : policies_of_this_run()) {
    std::vector<Difference> seen;
    for (size_t runs = 0; runs < kRunsOfDoubt; ++runs) {
      if (seen.size() == 1 && seen.front().holds()) break;
      if (runs > 0 && ++repeats > kMostRepeats) break;
      if (const auto difference = pairs.compare(policy.name)) seen.push_back(*difference);
    }
    if (seen.empty()) {
      not_compared += ' ' + policy.name;
      continue;
    }
    EXPECT_NEAR(median(seen, &Difference::response), 0, kTolerance) << policy.name;
    EXPECT_NEAR(median(seen, &Difference::local_share), 0, kShareTolerance) << policy.name;
  }
  if (!not_compared.empty())
    GTEST_SKIP() << "not compared:" << not_compared << " (" << pairs.disturbances() << ")";
}

}  // namespace
}  // namespace tierpilot::test
