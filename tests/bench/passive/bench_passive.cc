// What the passive probe costs the programs it watches: work per second with it on against off, in
// pairs of runs. So the dispatch of its programs is included, which the kernel's run times leave
// out, and so are the governor's threads.
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
  size_t long_pairs = 6, unlimited_pairs = 6;
  double long_seconds = 20;
  bool wall = false;
  std::vector<std::string> with;

  // CPU time of this process: what others do on the machine is left out.
  clockid_t clock() const { return wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID; }
};

// Units done within some seconds; below zero: it failed.
using Work = std::function<double(double seconds)>;

struct Subject {
  std::string title;
  size_t batch;  // units in a call of the kernel's
  Work work;
};

struct Watch {
  size_t pairs;
  double seconds;
  double cpu_share;
};

PassiveOptions probe_options(const Options& options, double cpu_share) {
  PassiveOptions result{.cpu_share = cpu_share, .run_time_stats = false};
  result.subjects.insert(result.subjects.end(), options.with.begin(), options.with.end());
  return result;
}

void print_subjects(const PassiveProbe& probe) {
  for (const auto& state : probe.subjects())
    fmt::print("  {:10} {:3} {}\n", state.subject, state.on ? "on" : "off", state.reason);
}

void print_side(const char* name, const std::vector<double>& throughputs) {
  fmt::print("  {:4} median {:12.0f} per second   quartiles {:12.0f} to {:.0f}\n", name,
             interpolated_quantile(throughputs, 0.5), interpolated_quantile(throughputs, 0.25),
             interpolated_quantile(throughputs, 0.75));
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

void print_result(const Subject& subject, const Watch& watch, const Comparison& result) {
  const auto [low, high] = median_interval(result.cost_percent);
  print_side("off", result.off);
  print_side("on", result.on);
  fmt::print("  cost median {:+.2f} %, {} within [{:+.2f}, {:+.2f}] %; goal {} %: {}\n",
             interpolated_quantile(result.cost_percent, 0.5),
             watch.pairs < 6 ? "all" : "95 % of medians", low, high, kGoalPercent,
             verdict(low, high));
  const double added_s =
      1 / interpolated_quantile(result.on, 0.5) - 1 / interpolated_quantile(result.off, 0.5);
  fmt::print("  added to each call: {:.0f} ns\n",
             added_s * 1e9 * static_cast<double>(subject.batch));
}

// As the daemon, which looks at its counters once a second.
double work_and_sample(const Work& work, PassiveProbe* probe, clockid_t clock, double seconds) {
  const double start = seconds_by(clock);
  double done = 0, passed = 0, next_sample = 1;
  while (passed < seconds) {
    const double more = work(std::min(seconds - passed, 1.0));
    if (more < 0) return -1;
    done += more;
    passed = seconds_by(clock) - start;
    if (probe && passed >= next_sample) {
      probe->sample();
      ++next_sample;
    }
  }
  return done / passed;
}

bool measure(const Options& options, const Subject& subject, const Watch& watch) {
  std::optional<MigrationStats> seen;
  const auto run = [&](PassiveProbe* probe, double seconds) {
    // Loading programs changes the kernel's text, which empties caches, and under an emulator its
    // translations.
    subject.work(options.seconds / 2);
    return work_and_sample(subject.work, probe, options.clock(), seconds);
  };
  // Turns of watching need time; without any a second is as good.
  const auto off = [&] { return run(nullptr, std::min(watch.seconds, 1.0)); };
  const auto on = [&] {
    const auto probe = PassiveProbe::start(probe_options(options, watch.cpu_share));
    probe->track_group(::getpgrp(), own_cgroup());
    const double throughput = run(probe.get(), watch.seconds);
    seen = probe->sample().migration;
    return throughput;
  };
  const auto result = compare(watch.pairs, off, on);
  fmt::print("{}, {}, {} pairs of {} {} s\n", subject.title,
             watch.cpu_share > 0 ? "as the daemon watches" : "without a limit", watch.pairs,
             watch.seconds, options.wall ? "wall" : "CPU");
  if (result.on.empty()) {
    fmt::print(stderr, "{}: failed\n", subject.title);
    return false;
  }
  print_result(subject, watch, result);
  if (seen && seen->watched_pages_share)
    fmt::print("  watched in the last of them: {:.1f} % of the pages, {:.1f} % of the time\n",
               *seen->watched_pages_share * 100, seen->watched_time_share * 100);
  std::fflush(stdout);
  return true;
}

int run(const Options& options) {
  const double share = PassiveOptions{}.cpu_share;
  print_subjects(*PassiveProbe::start(probe_options(options, share)));
  const clockid_t clock = options.clock();
  const Subject faults{"page faults", 1, [=](double s) { return fault_pages(clock, s); }};
  bool ok = measure(options, faults, {options.pairs, options.seconds, share});
  const auto shuttle = Shuttle::make();
  if (!shuttle) {
    fmt::print("page moves: skipped: {}\n", shuttle.error().message);
    return ok ? 0 : 1;
  }
  for (const size_t batch : {1, 16, 512}) {
    const auto move = [&, batch](double s) { return (*shuttle)->move_pages(clock, s, batch); };
    const Subject moves{fmt::format("page moves, {} in a call", batch), batch, move};
    ok &= measure(options, moves, {options.long_pairs, options.long_seconds, share});
    ok &= measure(options, moves, {options.unlimited_pairs, options.seconds, 0});
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"What the passive probe costs programs bound by page faults and by page moves."};
  app.add_option("--pairs", options.pairs, "of page faults")
      ->check(CLI::Range(2, 10'000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "of each run")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  app.add_option("--long-pairs", options.long_pairs, "in which migrations are watched in turns")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--long-seconds", options.long_seconds, "of each of their runs")
      ->check(CLI::Range(1.0, 600.0))
      ->capture_default_str();
  app.add_option("--unlimited-pairs", options.unlimited_pairs,
                 "in which they are watched all the time, for comparison")
      ->check(CLI::Range(2, 10'000))
      ->capture_default_str();
  app.add_flag("--wall", options.wall,
               "by wall time, not by this process's CPU time: includes what the kernel does later, "
               "and what others do");
  app.add_option("--with", options.with, "subjects beyond the defaults")
      ->check(CLI::IsMember({"fault_time"}));
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
