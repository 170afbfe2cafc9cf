#include "tools/tiertool/watching.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "daemon/memory/heat/choose.h"
#include "daemon/memory/loop/loaded_latency.h"
#include "daemon/memory/paging/kernel_settings.h"
#include "daemon/probe/active/measure.h"
#include "daemon/topology/tiers.h"
#include "tools/output/arguments.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
constexpr double kNsPerS = 1e9;

// While it lives, signals that end a program wait to be asked for: the tracker must be put away in
// order, or the kernel goes on watching.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;

  // Waits at most `ns`; true when one came.
  bool wait(int64_t ns) const {
    const timespec limit{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    return ::sigtimedwait(&signals_, nullptr, &limit) > 0;
  }

 private:
  sigset_t signals_{}, before_{};
};

// By node; empty when they could not be had. Takes a second or two.
std::map<int, double> measured_latencies_ns(const Topology& topology) {
  const auto nodes = candidate_tiers(topology, {});
  if (!nodes || nodes->size() < 2) return {};
  const auto tiers = measure_tiers(
      *nodes,
      {.rounds = 3, .bandwidth = false, .eviction = false, .timeout = std::chrono::seconds(10)});
  std::map<int, double> latencies_ns;
  if (!tiers) return latencies_ns;
  for (const auto& tier : *tiers)
    if (tier.latency_p50_ns.value) latencies_ns[tier.tier.numa_node] = *tier.latency_p50_ns.value;
  return latencies_ns;
}

Status check_static_tier(const PagingGroup& group, size_t tiers) {
  if (group.policy != PagingPolicy::kStatic || group.static_tier < tiers) return {};
  return fail(ErrorCode::kInvalid, fmt::format("--tier {}: this machine's tiers are 0 to {}",
                                               group.static_tier, std::max<size_t>(tiers, 1) - 1));
}

// A long watch keeps every second frame, then every fourth, and so on.
void keep_frame(Watch& watch, double at_s) {
  if (watch.frames.size() == Watch::kMaxFrames) {
    size_t kept = 0;
    for (size_t i = 0; i < watch.frames.size(); i += 2)
      watch.frames[kept++] = std::move(watch.frames[i]);
    watch.frames.resize(kept);
  }
  watch.frames.push_back({at_s, watch.view.regions});
}

// Rounds until the time is over, the process ends or a signal comes.
void run_rounds(PagingLoop& loop, SystemPacer& pacer, const HeldSignals& signals,
                const WatchOptions& options, Watch& watch) {
  const int64_t start_ns = pacer.boot_ns();
  const int64_t end_ns =
      options.seconds > 0 ? start_ns + static_cast<int64_t>(options.seconds * kNsPerS) : INT64_MAX;
  for (int64_t next_ns = start_ns;;) {
    const int64_t wait_ns = std::min(next_ns, end_ns) - pacer.boot_ns();
    if (signals.wait(std::max<int64_t>(wait_ns, 0)) || pacer.boot_ns() >= end_ns) break;
    next_ns = loop.run_round();
    auto views = loop.view();
    if (views.empty()) break;
    watch.view = std::move(views.front());
    if (options.keep_frames)
      keep_frame(watch, static_cast<double>(pacer.boot_ns() - start_ns) / kNsPerS);
    auto plan =
        watch.view.target.mode == PagingMode::kEnforce ? loop.latest_plan() : loop.latest_advice();
    if (!plan.moves.empty() || watch.plan.moves.empty()) watch.plan = std::move(plan);
  }
  watch.watched_s = static_cast<double>(pacer.boot_ns() - start_ns) / kNsPerS;
}

// Nothing: the best there is.
Result<std::optional<TrackerKind>> tracker_wanted(const std::string& name) {
  if (name == "auto") return std::optional<TrackerKind>();
  return tracker_from_name(name).map([](TrackerKind kind) { return std::optional(kind); });
}

}  // namespace

Status check_tracker(const std::string& name) {
  return tracker_wanted(name).map([](const auto&) {});
}

void add_watch_options(CLI::App& verb, WatchOptions& options) {
  verb.add_option("pid", options.pid, "process id")->required()->check(process_number());
  verb.add_option("--tracker", options.tracker, "what sees accesses; auto: the best there is")
      ->type_name("auto|damon|numa-hint|soft-dirty|fault-address")
      ->capture_default_str();
  verb.add_option("--seconds", options.seconds, "how long to watch; 0: until Ctrl-C")
      ->check(number_between(0.0, 1e6))
      ->capture_default_str();
  verb.add_option("--interval", options.interval_s, "seconds between two looks")
      ->check(number_between(0.05, 3600.0))
      ->capture_default_str();
}

Result<TierSet> find_placement_tiers(const Context& context) {
  const auto topology = discover_topology(context.sysroot, context.discover);
  if (!topology) return tl::unexpected(topology.error());
  return context.foreign_root ? make_paging_tiers(*topology)
                              : make_paging_tiers(*topology, measured_latencies_ns(*topology));
}

Result<Watch> watch_process(const Context& context, const WatchOptions& options) {
  if (context.foreign_root)
    return fail(ErrorCode::kInvalid,
                "--sysroot shows another machine, and processes are watched on this one");
  const auto tiers = find_placement_tiers(context);
  if (!tiers) return tl::unexpected(tiers.error());
  if (auto status = check_static_tier(options.group, tiers->tiers.size()); !status)
    return tl::unexpected(status.error());
  const HeldSignals signals;
  SystemPacer pacer;
  const TrackerChoice trackers(context.sysroot, pacer);
  const auto wanted = tracker_wanted(options.tracker);
  if (!wanted) return tl::unexpected(wanted.error());
  Watch watch{
      .offers = trackers.offers(), .tiers = tiers->tiers, .latency_source = tiers->latency_source};
  const auto settings = read_kernel_settings(context.sysroot);
  const auto source = trackers.choose(*wanted, options.pid);
  if (!source) return tl::unexpected(source.error());
  watch.tracker = (*source)->offer();
  watch.conflicts = find_conflicts(settings, options.mode, false);
  LoopOptions loop_options = options.loop;
  loop_options.trust_any_tracker = wanted->has_value();
  loop_options.interval_ns = static_cast<int64_t>(options.interval_s * kNsPerS);
  LoopEnvironment environment{.sysroot = context.sysroot,
                              .pacer = pacer,
                              .kernel = system_page_kernel(),
                              .trackers = **source,
                              .tiers = tiers->tiers};
  std::optional<LoadedLatencyProbe> latencies;
  if (options.group.policy == PagingPolicy::kBalance) {
    latencies.emplace(tiers->tiers);
    environment.refresh_tiers = [&latencies](auto& all) { latencies->refresh(all); };
  }
  PagingLoop loop(std::move(environment), loop_options);
  const auto added = loop.add({.pid = options.pid, .group = options.group, .mode = options.mode});
  if (!added) return tl::unexpected(added.error());
  run_rounds(loop, pacer, signals, options, watch);
  watch.counters = loop.counters();
  watch.tiers = loop.tiers();
  if (watch.counters.rounds == 0 || watch.view.target.pid == 0)
    return fail(ErrorCode::kNotFound,
                fmt::format("process {}: there is none, or it ended at once", options.pid));
  return watch;
}

ordered_json tracker_to_json(const Watch& watch) {
  const auto& traits = watch.tracker.traits;
  ordered_json value{{"name", tracker_name(traits.kind)},
                     {"resolution", traits.resolution},
                     {"blind_spots", traits.blind_spots},
                     {"effect", traits.effect},
                     {"way", watch.tracker.way},
                     {"sees_reads", traits.sees_reads},
                     {"sees_repeats", traits.sees_repeats},
                     {"others", ordered_json::array()}};
  for (const auto& offer : watch.offers)
    if (offer.traits.kind != traits.kind)
      value["others"].push_back(
          {{"name", tracker_name(offer.traits.kind)},
           {"state", offer.available ? "available" : offer.available.error().message}});
  return value;
}

}  // namespace tierpilot::tiertool
