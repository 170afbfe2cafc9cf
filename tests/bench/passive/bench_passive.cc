// What the passive probe costs the programs it watches: work per CPU second with it on against off,
// in pairs of runs. So the dispatch of its programs is included, which the kernel's run times leave
// out.
//
//   bench_passive                      what the daemon has on
//   bench_passive --with fault_time    and what it has not
//
// Wants an otherwise idle machine and root. In an emulated guest the figures are ratios of the
// emulator: its calls and atomics are dearer than a processor's.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/sysroot.h"
#include "daemon/probe/passive/passive_probe.h"
#include "tests/bench/passive/paired.h"
#include "tests/bench/passive/workloads.h"

using namespace tierpilot;

namespace {

constexpr double kGoalPercent = 1;

struct Options {
  size_t pairs = 100;
  double seconds = 0.1;
  std::vector<std::string> with;
};

PassiveOptions probe_options(const Options& options) {
  PassiveOptions result;
  result.run_time_stats = false;
  result.subjects.insert(result.subjects.end(), options.with.begin(), options.with.end());
  return result;
}

void print_subjects(const PassiveProbe& probe) {
  for (const auto& state : probe.subjects())
    fmt::print("  {:10} {:3} {}\n", state.subject, state.on ? "on" : "off", state.reason);
}

void print_side(const char* name, const std::vector<double>& throughputs) {
  fmt::print("  {:4} median {:12.0f} per CPU second   quartiles {:12.0f} to {:.0f}\n", name,
             quantile(throughputs, 0.5), quantile(throughputs, 0.25), quantile(throughputs, 0.75));
}

// A wide interval says how noisy the machine was, and nothing of the probe.
const char* verdict(double low, double high) {
  if (high - low > 4 * kGoalPercent) return "not decided: too noisy, see --pairs";
  if (high <= kGoalPercent) return "met";
  return low > kGoalPercent ? "missed" : "not decided, see --pairs";
}

// As a task's: its pages are charged to a cgroup, if there is one with the memory controller.
OwnCgroup own_cgroup() {
  const auto line = Sysroot().read("/proc/self/cgroup").value_or("");
  const auto path = "/sys/fs/cgroup" + line.substr(line.rfind(':') + 1);
  const auto directory = path.substr(0, path.find('\n'));
  struct stat info {};
  if (!Sysroot().exists(directory + "/memory.current") || ::stat(directory.c_str(), &info) != 0)
    return {};
  return {.id = info.st_ino, .charges_memory = true};
}

// Of CPU time, to a unit of work.
double added_ns(const Comparison& result) {
  return (1 / quantile(result.on, 0.5) - 1 / quantile(result.off, 0.5)) * 1e9;
}

// `batch` units of work are one call of the kernel's.
bool measure(const Options& options, const std::string& title, size_t batch,
             const std::function<double(double)>& work) {
  // Each run warms up first: loading programs changes the kernel's text, which empties caches, and
  // under an emulator its translations.
  const auto warm_work = [&] {
    work(options.seconds / 2);
    return work(options.seconds);
  };
  const auto on = [&] {
    const auto probe = PassiveProbe::start(probe_options(options));
    probe->track_group(::getpgrp(), own_cgroup());
    const double throughput = warm_work();
    probe->sample();
    return throughput;
  };
  const auto result = compare(options.pairs, warm_work, on);
  if (result.on.empty()) {
    fmt::print(stderr, "{}: failed\n", title);
    return false;
  }
  const auto [low, high] = median_interval(result.cost_percent);
  fmt::print("{}, {} pairs of {} CPU seconds\n", title, options.pairs, options.seconds);
  print_side("off", result.off);
  print_side("on", result.on);
  fmt::print(
      "  cost median {:+.2f} %, 95 % of medians within [{:+.2f}, {:+.2f}] %; goal {} %: {}\n",
      quantile(result.cost_percent, 0.5), low, high, kGoalPercent, verdict(low, high));
  fmt::print("  added to each call: {:.0f} ns\n", added_ns(result) * static_cast<double>(batch));
  return true;
}

int run(const Options& options) {
  print_subjects(*PassiveProbe::start(probe_options(options)));
  bool ok = measure(options, "page faults", 1, fault_pages);
  const auto shuttle = Shuttle::make();
  if (!shuttle) {
    fmt::print("page moves: skipped: {}\n", shuttle.error().message);
    return ok ? 0 : 1;
  }
  for (const size_t batch : {512, 16, 1})
    ok &= measure(options, fmt::format("page moves, {} in a call", batch), batch,
                  [&](double seconds) { return (*shuttle)->move_pages(seconds, batch); });
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"What the passive probe costs programs bound by page faults and by page moves."};
  app.add_option("--pairs", options.pairs)->check(CLI::Range(2, 10'000))->capture_default_str();
  app.add_option("--seconds", options.seconds, "of CPU time of each run")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--with", options.with, "subjects beyond the defaults")
      ->check(CLI::IsMember({"fault_time"}));
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
