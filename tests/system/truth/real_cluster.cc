#include "tests/system/truth/real_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "base/text/json_text.h"

namespace tierpilot::test {
namespace {

constexpr std::chrono::minutes kLongestCommand{5};  // for a build with a sanitizer
constexpr std::chrono::seconds kIdleLook{4};
constexpr int kMostIdleLooks = 8;
constexpr int kMostProbes = 4;

Argv with(Argv front, const Argv& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

}  // namespace

Json output_of(const char* variable, Argv arguments,
               const std::map<std::string, std::string>& env) {
  arguments.insert(arguments.begin(), program(variable));
  const auto outcome = run_command(arguments, env, kLongestCommand);
  if (outcome.code != 0)
    throw std::runtime_error(fmt::format("{}: exit code {}: {}{}", fmt::join(arguments, " "),
                                         outcome.code, outcome.err, outcome.out));
  return parse_json<Json>(outcome.out);
}

RealCluster::RealCluster(const ClusterSize& size)
    : nodes_(size.nodes),
      cluster_({.nodes = size.nodes,
                .units = 1,
                .calibrate = true,
                .fast_budget = fmt::format("{}MiB", size.fast_mib),
                .slow_budget = fmt::format("{}MiB", size.slow_mib)}),
      env_{{"TIERPILOT_COORDINATOR", cluster_.address()}},
      disk_(cluster_.folder()) {}

CpuTime RealCluster::idle() const {
  CpuTime idle;
  for (int looks = 0; looks == 0 || (looks < kMostIdleLooks && !idle.is_left_alone()); ++looks) {
    const auto before = CpuTime::now();
    std::this_thread::sleep_for(kIdleLook);
    idle = CpuTime::now() - before;
  }
  return idle;
}

RealRun RealCluster::run(const Argv& load) {
  const size_t known_standstills = disk_.standstills().size();
  const auto before = CpuTime::now();
  output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "run"}, load), env_);
  RealRun run{.tasks = Json::array(), .used = CpuTime::now() - before, .standstills = {}};
  const auto list = tierctl({"task", "list"});
  for (const auto& task : list["tasks"])
    if (task["id"] > last_id_) run.tasks.push_back(task);
  for (const auto& task : run.tasks) last_id_ = std::max(last_id_, task["id"].get<uint64_t>());
  run.standstills = disk_.standstills();
  run.standstills.erase(run.standstills.begin(),
                        run.standstills.begin() + static_cast<ptrdiff_t>(known_standstills));
  return run;
}

double RealCluster::int32_to_float() const {
  double sum = 0;
  const auto list = tierctl({"node", "list"});
  for (const auto& node : list["nodes"]) sum += node["info"]["int32_to_float"].get<double>();
  return sum / nodes_;
}

sim::TierSpeeds RealCluster::measured_speeds() const {
  const auto file = cluster_.folder() / "tiers.json";
  for (int looks = 1;; ++looks) {
    const size_t known_standstills = disk_.standstills().size();
    std::ofstream(file) << output_of("TIERPILOT_TEST_TIERTOOL",
                                     {"tier", "show", "-j", "--dir", cluster_.folder().string()});
    const auto speeds = sim::read_tier_speeds(file);
    if (!speeds) throw std::runtime_error(speeds.error().message);
    if (disk_.standstills().size() == known_standstills || looks == kMostProbes) return *speeds;
  }
}

Json RealCluster::tierctl(const Argv& arguments) const {
  return output_of("TIERPILOT_TEST_TIERCTL", with({"-j"}, arguments), env_);
}

}  // namespace tierpilot::test
