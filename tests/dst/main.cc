// dst: runs the coordinator in a simulated cluster, seed after seed, and tells the shortest history
// of the first promise that does not hold.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>

#include "tests/dst/shrink.h"
#include "tests/dst/world.h"

namespace tierpilot::dst {
namespace {

struct Asked {
  uint64_t first = 1;
  uint64_t seeds = 500;
  std::optional<uint64_t> seed;
  int most_runs = 400;
  bool keep_going = false;
  WorldOptions world;
};

std::optional<Violation> run(uint64_t seed, const Plan& plan, const WorldOptions& options,
                             uint64_t* steps = nullptr) {
  World world(seed, plan, options);
  auto verdict = world.run();
  if (steps) *steps += world.steps();
  return verdict;
}

void show(uint64_t seed, const Plan& plan, const Violation& found, const Asked& asked) {
  const auto again = [&](const Plan& shorter) {
    const auto verdict = run(seed, shorter, asked.world);
    return verdict && verdict->invariant == found.invariant;
  };
  const Plan shortest = shrink(plan, again, asked.most_runs);
  fmt::print("seed {}: {}: {}\n{} of {} actions are left:\n", seed, found.invariant, found.what,
             shortest.size(), plan.size());
  for (const auto& action : shortest) fmt::print("  {}\n", describe(action));
  fmt::print("their history:\n");
  auto options = asked.world;
  options.tell = [](const std::string& line) { fmt::print("  {}\n", line); };
  const auto verdict = run(seed, shortest, options);
  if (verdict) fmt::print("  => {}: {}\n", verdict->invariant, verdict->what);
  std::fflush(stdout);
}

int run_all(const Asked& asked) {
  const uint64_t first = asked.seed.value_or(asked.first);
  const uint64_t count = asked.seed ? 1 : asked.seeds;
  std::map<std::string, uint64_t> found;
  const auto begin = std::chrono::steady_clock::now();
  uint64_t steps = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Plan plan = make_plan(seed, asked.world.included);
    const auto verdict = run(seed, plan, asked.world, &steps);
    if (!verdict) continue;
    if (found[verdict->invariant]++ == 0) show(seed, plan, *verdict, asked);
    if (!asked.keep_going) break;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("seeds {} to {}: {} steps in {:.1f} s", first, first + count - 1, steps, took.count());
  if (found.empty()) fmt::print(", every promise held");
  for (const auto& [name, times] : found) fmt::print(", {} in {}", name, times);
  fmt::print("\n");
  return found.empty() ? 0 : 1;
}

int main_checked(int argc, char** argv) {
  CLI::App app{"Simulates the coordinator, its nodes and clients under faults, seed after seed."};
  Asked asked;
  std::vector<std::string> without, only;
  app.add_option("--seeds", asked.seeds, "How many seeds")->capture_default_str();
  app.add_option("--first-seed", asked.first, "The first of them")->capture_default_str();
  app.add_option("--seed", asked.seed, "This one alone");
  app.add_option("--steps", asked.world.most_steps, "Most events of a run")->capture_default_str();
  app.add_option("--without", without,
                 fmt::format("Leave out faults and work of these kinds: {}",
                             fmt::join(optional_kinds(), ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(optional_kinds()));
  app.add_option("--only", only,
                 fmt::format("Hold these invariants only: {}", fmt::join(invariant_names(), ", ")))
      ->delimiter(',')
      ->check(CLI::IsMember(invariant_names()));
  app.add_flag("!--drop-old-home", asked.world.keeps_old_home,
               "Nodes drop the version before at once, not when the coordinator has the new one");
  app.add_flag("!--blind-to-pauses", asked.world.notices_pauses,
               "Wardens do not notice that their machine was paused");
  app.add_flag("!--forget-ends", asked.world.tells_kept_ends,
               "Daemons do not tell what ended before they started");
  app.add_flag("--keep-going", asked.keep_going,
               "Count violations over all seeds; the first of each kind is told");
  app.add_flag_callback(
      "--tell",
      [&] { asked.world.tell = [](const std::string& line) { fmt::print("  {}\n", line); }; },
      "Print what happens, as of a seed that fails");
  app.add_flag_callback(
      "--log", [] { spdlog::set_level(spdlog::level::info); },
      "Print what coordinator and nodes log; with --seed and --shrink-runs 0");
  app.add_option("--shrink-runs", asked.most_runs, "Runs to shorten a history by, at most")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  asked.world.included = optional_kinds();
  for (const auto& name : without) asked.world.included.erase(name);
  asked.world.held = {only.begin(), only.end()};
  asked.world.directory =
      std::filesystem::temp_directory_path() / fmt::format("tierpilot-dst-{}", ::getpid());
  const int code = run_all(asked);
  std::error_code ignored;
  std::filesystem::remove_all(asked.world.directory, ignored);
  return code;
}

}  // namespace
}  // namespace tierpilot::dst

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  return tierpilot::dst::main_checked(argc, argv);
}
