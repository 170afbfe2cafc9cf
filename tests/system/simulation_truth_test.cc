// The simulator against the truth: one workload run by real daemons and simulated with the tiers
// that were measured here.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "policies/registry.h"
#include "policies/sim/simulator.h"
#include "tests/system/cluster.h"
#include "tests/system/measured_costs.h"

namespace tierpilot::test {
namespace {

constexpr double kTolerance = 0.15;
constexpr double kShareTolerance = 0.1;  // decisions depend a little on how fast tasks end
// Of the CPUs, by others: real times mean nothing then.
constexpr double kBusyShare = 0.15;
// Nor what is measured beside others at the start.
constexpr double kBusyShareAtRest = 0.1;
// As long as what daemons take is not known, it counts as others'.
constexpr double kBusyShareAtFirst = 0.25;
constexpr uint64_t kMiB = 1 << 20;
constexpr std::chrono::minutes kLongestCommand{5};  // for a build with a sanitizer

constexpr int kNodes = 3;
constexpr uint64_t kFastMiB = 32, kSlowMiB = 128;

struct Load {
  int tasks;
  double arrivals_per_s;
  Argv datasets_and_work;

  // With another number of tasks: its datasets are the same.
  Argv of(int some_tasks) const {
    Argv arguments{"--tasks", std::to_string(some_tasks), "--rate",
                   fmt::format("{}", arrivals_per_s)};
    arguments.insert(arguments.end(), datasets_and_work.begin(), datasets_and_work.end());
    return arguments;
  }
};
// Tasks that are mostly work and meet others now and then.
const Load kSomeWait{
    120,
    8,
    {"--datasets", "16", "--min-size", "2MiB", "--max-size", "8MiB", "--work", "4", "--seed", "5"}};
// More work than three nodes, or two cores, can do.
const Load kSaturated{
    120,
    60,
    {"--datasets", "16", "--min-size", "2MiB", "--max-size", "8MiB", "--work", "4", "--seed", "5"}};

struct Case {
  std::string policy;
  const Load* load;
  bool saturated() const { return load == &kSaturated; }
  std::string name() const { return policy + (saturated() ? ", saturated" : ""); }
};

// Every policy that does not learn.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& policy : registered_policies())
    if (!policy.learns) all.push_back({policy.name, &kSomeWait});
  return all;
}

Json output_of(const char* variable, Argv arguments,
               const std::map<std::string, std::string>& env = {}) {
  arguments.insert(arguments.begin(), program(variable));
  const auto outcome = run_command(arguments, env, kLongestCommand);
  if (outcome.code != 0)
    throw std::runtime_error(fmt::format("{}: exit code {}: {}{}", fmt::join(arguments, " "),
                                         outcome.code, outcome.err, outcome.out));
  return Json::parse(outcome.out);
}

Argv with(Argv front, const Argv& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

// What tasks take is each run's own: how fast the machine computes changes by a quarter from run to
// run. What they say that they take is what policies saw.
sim::Workload simulated_workload(const Json& plan, const Json& tasks, double int32_to_float) {
  sim::Workload workload;
  workload.users = {"all"};
  std::map<std::string, uint32_t> index;
  for (const auto& dataset : plan["datasets"]) {
    index[dataset["name"]] = static_cast<uint32_t>(workload.datasets.size());
    workload.datasets.push_back({dataset["bytes"].get<uint64_t>()});
  }
  std::map<std::string, double> seconds;
  for (const auto& task : tasks) seconds[task["name"]] = cpu_s(task);
  for (const auto& planned : plan["tasks"]) {
    sim::Task task;
    task.arrival_ns = planned["arrival_ms"].get<int64_t>() * 1'000'000;
    task.operations = seconds.at(planned["name"]) * sim::kReferenceOperationsPerSecond;
    task.declared_operations = planned["float_operations"].get<double>() +
                               planned["int_operations"].get<double>() * int32_to_float;
    task.first_use = static_cast<uint32_t>(workload.uses.size());
    for (const auto& use : planned["datasets"])
      workload.uses.push_back({index.at(use["name"]), use["mode"] == "write"});
    task.use_count = static_cast<uint32_t>(workload.uses.size()) - task.first_use;
    workload.tasks.push_back(task);
  }
  return workload;
}

sim::ClusterSpec simulated_cluster(const sim::TierSpeeds& tiers) {
  sim::NodeGroup group;
  group.count = kNodes;
  group.units = 1;
  group.operations_per_s = sim::kReferenceOperationsPerSecond;
  group.fast_budget_bytes = kFastMiB * kMiB;
  group.slow_budget_bytes = kSlowMiB * kMiB;
  group.tiers = tiers;
  group.shared_cores = std::thread::hardware_concurrency();
  return {.name = "this machine", .groups = {group}};
}

// Where the time of a mean task goes, in seconds: shows what the simulator misses.
struct Parts {
  double waiting = 0;  // in the queue, on the way to its node, for compute units
  double serving = 0;  // its data
  double running = 0;  // from its start until the coordinator knows its end

  std::string text() const {
    return fmt::format("{:.1f} ms (waiting {:.1f}, serving {:.1f}, running {:.1f})",
                       (waiting + serving + running) * 1e3, waiting * 1e3, serving * 1e3,
                       running * 1e3);
  }
};

Parts real_parts(const Json& tasks) {
  Parts sum;
  const auto count = static_cast<double>(tasks.size());
  for (const auto& task : tasks) {
    const double wait_s = task["wait_ms"].get<double>() * 1e-3;
    const double serving_s = task["served"]["latency_ns"].get<double>() * 1e-9;
    sum.waiting += (wait_s - serving_s) / count;
    sum.serving += serving_s / count;
    sum.running += (task["response_ms"].get<double>() * 1e-3 - wait_s) / count;
  }
  return sum;
}

struct PartsOfRun final : sim::Listener {
  // A real start is reported when the process is there, a simulated one when it is to be made.
  explicit PartsOfRun(double launch_s) : launch_s(launch_s) {}
  void decided(sim::Attempt, const View&, const Observation&, const Decision&) override {}
  void served(sim::Attempt, const ServiceMeasure& measure, const RewardParts&) override {
    sum.serving += measure.service_ns * 1e-9;
    sum.waiting -= measure.service_ns * 1e-9;
  }
  void abandoned(sim::Attempt) override {}
  void finished(sim::Attempt, const sim::TaskTimes& times) override {
    sum.waiting += times.wait_s + launch_s;
    sum.running += times.response_s - times.wait_s - launch_s;
    ++count;
  }
  Parts mean() const { return {sum.waiting / count, sum.serving / count, sum.running / count}; }
  const double launch_s;
  Parts sum;
  double count = 0;
};

double local_byte_share(const sim::RunResult& result) {
  const auto all = result.hit_bytes + result.promoted_bytes + result.fetched_bytes;
  return static_cast<double>(result.hit_bytes) / static_cast<double>(all);
}

bool is_quiet(const CpuTime& idle) {
  return idle.busy_s <= kBusyShareAtRest * idle.all_s;
}

Result<sim::TierSpeeds> measured_speeds(const std::filesystem::path& folder) {
  const auto file = folder / "tiers.json";
  std::ofstream(file) << output_of("TIERPILOT_TEST_TIERTOOL",
                                   {"tier", "show", "-j", "--dir", folder.string()});
  return sim::read_tier_speeds(file);
}

// Real runs on one cluster.
class RealCluster {
 public:
  // Of the cluster while it has nothing to do; others may end what they do within half a minute.
  CpuTime idle() const {
    CpuTime idle;
    for (int looks = 0; looks == 0 || (looks < 8 && !is_quiet(idle)); ++looks) {
      const auto before = CpuTime::now();
      std::this_thread::sleep_for(std::chrono::seconds(4));
      idle = CpuTime::now() - before;
    }
    return idle;
  }
  void use(const std::string& policy) { tierctl({"policy", "use", policy}); }
  RealRun run(const Argv& load) {
    const auto before = CpuTime::now();
    summary_ = output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "run"}, load), env_)["summary"];
    RealRun run{.tasks = Json::array(), .used = CpuTime::now() - before};
    const auto list = tierctl({"task", "list"});
    for (const auto& task : list["tasks"])
      if (task["id"] > last_id_) run.tasks.push_back(task);
    for (const auto& task : run.tasks) last_id_ = std::max(last_id_, task["id"].get<uint64_t>());
    return run;
  }
  double mean_response_s() const { return summary_["response_ms"]["mean"].get<double>() * 1e-3; }
  double local_byte_share() const { return summary_["local_byte_share"].get<double>(); }
  // Float operations for one int32 operation, the mean of the nodes'.
  double int32_to_float() {
    double sum = 0;
    const auto list = tierctl({"node", "list"});
    for (const auto& node : list["nodes"]) sum += node["info"]["int32_to_float"].get<double>();
    return sum / kNodes;
  }

 private:
  Json tierctl(const Argv& arguments) {
    return output_of("TIERPILOT_TEST_TIERCTL", with({"-j"}, arguments), env_);
  }

  Cluster cluster_{{.nodes = kNodes,
                    .units = 1,
                    .small_network = true,
                    .calibrate = true,
                    .fast_budget = fmt::format("{}MiB", kFastMiB),
                    .slow_budget = fmt::format("{}MiB", kSlowMiB)}};
  const std::map<std::string, std::string> env_{{"TIERPILOT_COORDINATOR", cluster_.address()}};
  uint64_t last_id_ = 0;
  Json summary_;
};

TEST(SimulationTruth, BytesAndMeanResponsesAreThoseOfARealRun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "under TSan hardly any task meets no other: what the daemons' steps take cannot "
                  "be told";
#endif
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  const TempFolder folder("/tmp");
  ::sync();  // what others have left to be written
  RealCluster cluster;
  const auto idle = cluster.idle();
  if (!is_quiet(idle))
    GTEST_SKIP() << fmt::format("others use {:.0f} % of the CPUs: nothing can be measured",
                                idle.busy_s / idle.all_s * 100);
  const auto speeds = measured_speeds(folder.path());
  ASSERT_TRUE(speeds) << speeds.error().message;

  auto spec = simulated_cluster(*speeds);
  auto& group = spec.groups.front();
  std::map<const Load*, RealRun> smallest;  // hardly a task
  for (const Load* load : {&kSomeWait, &kSaturated}) smallest[load] = cluster.run(load->of(1));
  const double int32_to_float = cluster.int32_to_float();
  std::string busy;
  std::optional<RealRun> first;
  for (const auto& each : cases()) {
    const auto name = each.name();
    const auto asked = each.load->of(each.load->tasks);
    cluster.use(each.policy);
    const auto real = cluster.run(asked);
    double others = others_share(real, smallest[each.load], group);
    // The first run that has the CPUs to itself tells what the daemons' own steps cost; the others
    // are foreseen.
    if (!first && others <= kBusyShareAtFirst) {
      if (!take_costs(real, smallest[each.load], idle, spec))
        GTEST_SKIP() << "hardly any task met no other: what the daemons' steps take is not known";
      first = real;
      others = others_share(real, smallest[each.load], group);
      fmt::print("of each task: dispatch {:.1f} ms, launch {:.1f} ms, {:.1f} ms of a core\n",
                 spec.coordinator.dispatch_s * 1e3, group.launch_s * 1e3,
                 group.handling_core_s * 1e3);
    }
    if (!first) {
      busy += fmt::format(" {} ({:.0f} %)", name, others * 100);
      continue;
    }
    const auto plan = output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "plan"}, asked));
    const auto policy = make_policy(each.policy, {});
    ASSERT_TRUE(policy) << policy.error().message;
    PartsOfRun parts(group.launch_s);
    const auto simulated = sim::simulate(at_speed_of(real, *first, spec),
                                         simulated_workload(plan, real.tasks, int32_to_float),
                                         **policy, {.listener = &parts});
    ASSERT_TRUE(simulated) << simulated.error().message;
    const double real_s = cluster.mean_response_s(), share = cluster.local_byte_share();
    // Where all wait, which task ends first decides who gets where.
    if (!each.saturated()) {
      EXPECT_NEAR(local_byte_share(*simulated), share, kShareTolerance) << name;
    }
    if (others <= kBusyShare) {
      EXPECT_NEAR(simulated->response_s.mean, real_s, kTolerance * real_s) << name;
    } else {
      busy += fmt::format(" {} ({:.0f} %)", name, others * 100);
    }
    fmt::print(
        "{:23} real      {}, {:.3f} local; others took {:.1f} % of the CPUs\n"
        "{:+22.1f}% simulated {}, {:.3f} local\n",
        name, real_parts(real.tasks).text(), share, others * 100,
        (simulated->response_s.mean / real_s - 1) * 100, parts.mean().text(),
        local_byte_share(*simulated));
  }
  if (!busy.empty()) GTEST_SKIP() << "not compared where others used the CPUs:" << busy;
}

}  // namespace
}  // namespace tierpilot::test
