// The simulator against the truth: one workload run by real daemons and simulated with the tiers
// that were measured here.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <thread>

#include "policies/heuristics.h"
#include "policies/sim/simulator.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

constexpr int kNodes = 3;
constexpr double kTolerance = 0.15;
constexpr double kShareTolerance = 0.1;  // decisions depend a little on how fast tasks end
// Of the CPUs, by others and by the daemons: real times mean nothing then.
constexpr double kBusyShare = 0.15;
constexpr uint64_t kMiB = 1 << 20;
constexpr std::chrono::minutes kLongestCommand{5};  // for a build with a sanitizer
// Long enough to be mostly work, and busy enough to wait now and then.
const Argv kWorkload{"--tasks", "120",        "--datasets", "16",     "--min-size",
                     "2MiB",    "--max-size", "8MiB",       "--rate", "8",
                     "--work",  "4",          "--seed",     "5"};

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

// All CPUs' time since boot in ticks, and how much of it was not idle.
struct CpuTime {
  double busy = 0, all = 0;

  static CpuTime now() {
    std::ifstream stat("/proc/stat");
    std::string cpu;
    stat >> cpu;
    CpuTime time;
    double ticks = 0;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests' are in the first two.
    for (int field = 0; field < 8 && stat >> ticks; ++field) {
      time.all += ticks;
      if (field != 3 && field != 4) time.busy += ticks;
    }
    return time;
  }
  // The busy share since `before` that is not of `own_s` seconds.
  double others_share(const CpuTime& before, double own_s) const {
    const auto own = own_s * static_cast<double>(sysconf(_SC_CLK_TCK));
    return (busy - before.busy - own) / (all - before.all);
  }
};

// What the tasks of a real run, those after `last_id`, cost: their CPU time is theirs alone,
// whoever else computes.
std::map<std::string, double> cpu_seconds(const Json& tasks, uint64_t last_id) {
  std::map<std::string, double> seconds;
  for (const auto& task : tasks["tasks"])
    if (task["id"].get<uint64_t>() > last_id)
      seconds[task["name"]] = (task["exit"]["cpu_user_ns"].get<double>() +
                               task["exit"]["cpu_system_ns"].get<double>()) *
                              1e-9;
  return seconds;
}

sim::Workload simulated_workload(const Json& plan, const std::map<std::string, double>& seconds) {
  sim::Workload workload;
  workload.users = {"all"};
  std::map<std::string, uint32_t> index;
  for (const auto& dataset : plan["datasets"]) {
    index[dataset["name"]] = static_cast<uint32_t>(workload.datasets.size());
    workload.datasets.push_back({dataset["bytes"].get<uint64_t>()});
  }
  for (const auto& planned : plan["tasks"]) {
    sim::Task task;
    task.arrival_ns = planned["arrival_ms"].get<int64_t>() * 1'000'000;
    task.operations = seconds.at(planned["name"]) * sim::kReferenceOperationsPerSecond;
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
  group.fast_budget_bytes = 32 * kMiB;
  group.slow_budget_bytes = 128 * kMiB;
  group.tiers = tiers;
  group.shared_cores = std::thread::hardware_concurrency();
  return {.name = "this machine", .groups = {group}};
}

// Means, as a mean is what they are to add up to.
double mean(const std::vector<double>& values, double fallback) {
  if (values.empty()) return fallback;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// No other task was in the cluster between its submit and its end.
bool was_alone(const Json& task, const Json& tasks) {
  return std::none_of(tasks.begin(), tasks.end(), [&](const Json& other) {
    return other["id"] != task["id"] && other["submitted_ms"] <= task["finished_ms"] &&
           other["finished_ms"] >= task["submitted_ms"];
  });
}

// What a real run says of this machine's coordinator and daemons, by the tasks that met no others;
// by all of them where hardly any did, which only happens on a busy machine. A process is there
// from its launch to its end and takes its CPU time of that; what is neither that nor the serving
// of data is the coordinator's and the network's. Starts are reported late, when the process runs
// already, so waits do not tell.
void take_overheads(const Json& tasks, sim::ClusterSpec& spec) {
  constexpr ptrdiff_t kEnough = 10;
  std::vector<double> outside_s, launch_s, fetch_bytes_per_s;
  const auto& all = tasks["tasks"];
  const bool enough = std::count_if(all.begin(), all.end(), [&](const Json& task) {
                        return was_alone(task, all);
                      }) >= kEnough;
  for (const auto& task : tasks["tasks"]) {
    if (enough && !was_alone(task, all)) continue;
    const auto &served = task["served"], &exit = task["exit"];
    const double serving_s = served["latency_ns"].get<double>() * 1e-9;
    const double wall_s = exit["wall_ns"].get<double>() * 1e-9;
    const double cpu_s =
        (exit["cpu_user_ns"].get<double>() + exit["cpu_system_ns"].get<double>()) * 1e-9;
    if (exit["written"].empty())  // no commit
      outside_s.push_back(task["response_ms"].get<double>() * 1e-3 - serving_s - wall_s);
    launch_s.push_back(wall_s - cpu_s);
    if (served["local_bytes"] == 0 && served["promoted_bytes"] == 0 && served["fetch_ns"] > 0)
      fetch_bytes_per_s.push_back(served["fetched_bytes"].get<double>() /
                                  (served["fetch_ns"].get<double>() * 1e-9));
  }
  auto& coordinator = spec.coordinator;
  auto& group = spec.groups.front();
  coordinator.dispatch_s = std::max(
      0.0, mean(outside_s, coordinator.dispatch_s) - coordinator.accept_s - coordinator.report_s);
  group.launch_s = std::max(0.0, mean(launch_s, group.launch_s));
  group.link_bytes_per_s = mean(fetch_bytes_per_s, group.link_bytes_per_s);
  group.link_latency_s = 0;  // it is in that
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

// Of the tasks that came after `last_id`, which becomes the newest one's.
Parts real_parts(const Json& tasks, uint64_t& last_id) {
  Parts sum;
  double count = 0;
  uint64_t newest = last_id;
  for (const auto& task : tasks["tasks"]) {
    const auto id = task["id"].get<uint64_t>();
    if (id <= last_id) continue;
    newest = std::max(newest, id);
    const double wait_s = task["wait_ms"].get<double>() * 1e-3;
    const double serving_s = task["served"]["latency_ns"].get<double>() * 1e-9;
    sum.waiting += wait_s - serving_s;
    sum.serving += serving_s;
    sum.running += task["response_ms"].get<double>() * 1e-3 - wait_s;
    ++count;
  }
  last_id = newest;
  return {sum.waiting / count, sum.serving / count, sum.running / count};
}

struct PartsOfRun final : sim::Listener {
  void decided(sim::Attempt, const View&, const Observation&, const Decision&) override {}
  void served(sim::Attempt, const ServiceMeasure& measure, const RewardParts&) override {
    sum.serving += measure.service_ns * 1e-9;
    sum.waiting -= measure.service_ns * 1e-9;
  }
  void abandoned(sim::Attempt) override {}
  void finished(sim::Attempt, const sim::TaskTimes& times) override {
    sum.waiting += times.wait_s;
    sum.running += times.response_s - times.wait_s;
    ++count;
  }
  Parts mean() const { return {sum.waiting / count, sum.serving / count, sum.running / count}; }
  Parts sum;
  double count = 0;
};

using MakePolicy = std::unique_ptr<Policy> (*)();
const std::map<std::string, MakePolicy> kPolicies{
    {"random", [] { return make_random_policy(1); }},
    {"round-robin", [] { return make_round_robin_policy(); }},
    {"least-loaded", [] { return make_least_loaded_policy(1); }},
    {"locality-greedy", [] { return make_locality_greedy_policy(1); }},
    {"locality-load", [] { return make_locality_load_policy(1); }}};

double local_byte_share(const sim::RunResult& result) {
  const auto all = result.hit_bytes + result.promoted_bytes + result.fetched_bytes;
  return static_cast<double>(result.hit_bytes) / static_cast<double>(all);
}

TEST(SimulationTruth, BytesAndMeanResponsesAreThoseOfARealRun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "under TSan the nodes are given more work than they can do: the queue grows to the "
         "end, and small errors of their speed with it";
#endif
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  const TempFolder folder("/tmp");
  const auto tiers =
      output_of("TIERPILOT_TEST_TIERTOOL", {"tier", "show", "-j", "--dir", folder.path().string()});
  std::ofstream(folder.path() / "tiers.json") << tiers;
  const auto speeds = sim::read_tier_speeds(folder.path() / "tiers.json");
  ASSERT_TRUE(speeds) << speeds.error().message;

  Cluster cluster({.nodes = kNodes, .units = 1, .small_network = true, .calibrate = true});
  const auto plan = output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "plan"}, kWorkload));
  auto spec = simulated_cluster(*speeds);
  const std::map<std::string, std::string> env{{"TIERPILOT_COORDINATOR", cluster.address()}};
  std::string busy;
  uint64_t last_id = 0;
  for (const auto& [name, make] : kPolicies) {
    output_of("TIERPILOT_TEST_TIERCTL", {"-j", "policy", "use", name}, env);
    const auto before = CpuTime::now();
    const auto real = output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "run"}, kWorkload), env);
    const auto after = CpuTime::now();
    const auto tasks = output_of("TIERPILOT_TEST_TIERCTL", {"-j", "task", "list"}, env);
    // The first run tells what the daemons' own steps cost; the others are foreseen. What tasks
    // cost is each run's own: how fast the machine computes changes by a quarter from run to run.
    if (last_id == 0) take_overheads(tasks, spec);
    const auto seconds = cpu_seconds(tasks, last_id);
    const auto workload = simulated_workload(plan, seconds);
    double tasks_s = 0;
    for (const auto& [task, cpu_s] : seconds) tasks_s += cpu_s;
    const double real_s = real["summary"]["response_ms"]["mean"].get<double>() * 1e-3;
    const auto policy = make();
    PartsOfRun parts;
    const auto simulated = sim::simulate(spec, workload, *policy, {.listener = &parts});
    ASSERT_TRUE(simulated) << simulated.error().message;
    const double share = real["summary"]["local_byte_share"].get<double>();
    EXPECT_NEAR(local_byte_share(*simulated), share, kShareTolerance) << name;
    const double others = after.others_share(before, tasks_s);
    if (others <= kBusyShare)
      EXPECT_NEAR(simulated->response_s.mean, real_s, kTolerance * real_s) << name;
    else
      busy += fmt::format(" {} ({:.0f} %)", name, others * 100);
    fmt::print(
        "{:16} real      {}, {:.3f} local; others took {:.1f} % of the CPUs\n"
        "{:16} simulated {}, {:.3f} local\n",
        name, real_parts(tasks, last_id).text(), share, others * 100, "", parts.mean().text(),
        local_byte_share(*simulated));
  }
  if (!busy.empty())
    GTEST_SKIP() << "bytes agree; times were not compared where others used the CPUs:" << busy;
}

}  // namespace
}  // namespace tierpilot::test
