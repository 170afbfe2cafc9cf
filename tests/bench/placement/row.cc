#include "tests/bench/placement/row.h"

#include <csignal>
#include <thread>

#include "daemon/memory/heat/choose.h"
#include "tests/bench/placement/child.h"

namespace tierpilot::bench {
namespace {

constexpr double kNsPerS = 1e9;
constexpr uint32_t kNextHotQuarter = 1;
constexpr double kNothingMoves = 1.0 / 3;  // so much of the time is enough

constexpr std::pair<RowKind, std::string_view> kRowNames[] = {
    {RowKind::kAllFast, "all fast"}, {RowKind::kAllFar, "all far"},
    {RowKind::kByHand, "by hand"},   {RowKind::kFirstTouch, "first touch"},
    {RowKind::kKernel, "kernel"},    {RowKind::kTierpilot, "tierpilot"}};

// The loop as "tiertool move run --mode enforce" runs it, in a thread.
class Tierpilot {
 public:
  Tierpilot(Stage& stage, const LoopOptions& options)
      : stage_(stage), options_(options), trackers_(stage.sysroot, pacer_) {}

  Status start(pid_t pid) {
    const auto source = trackers_.choose();
    if (!source) return tl::unexpected(source.error());
    tracker_ = tracker_name((*source)->offer().traits.kind);
    loop_.emplace(LoopEnvironment{.sysroot = stage_.sysroot,
                                  .pacer = pacer_,
                                  .kernel = system_page_kernel(),
                                  .trackers = **source,
                                  .tiers = stage_.tiers},
                  options_);
    const LoopTarget target{.pid = pid, .group = {.name = "program"}, .mode = PagingMode::kEnforce};
    if (auto status = loop_->add(target); !status) return status;
    thread_ = std::jthread([this](std::stop_token stop) { loop_->run(stop); });
    return {};
  }
  // Before the process ends, which the loop would note as trouble.
  LoopCounters stop() {
    thread_ = {};
    return loop_->counters();
  }
  const std::string& tracker() const { return tracker_; }

 private:
  Stage& stage_;
  const LoopOptions options_;
  SystemPacer pacer_;
  TrackerChoice trackers_;
  std::string tracker_;
  std::optional<PagingLoop> loop_;
  std::jthread thread_;
};

// Waits for `seconds`; an error when a signal asks for the end.
Status wait(double seconds) {
  const timespec limit{
      .tv_sec = static_cast<time_t>(seconds),
      .tv_nsec = static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  if (::sigtimedwait(&signals, nullptr, &limit) > 0)
    return fail(ErrorCode::kIo, "ended by a signal");
  return {};
}

// Lets the program run, and writes down how it gets on.
class Recorder {
 public:
  Recorder(Child& child, PlacedPages& pages, RowRun& run)
      : child_(child), pages_(pages), run_(run), start_ns_(clock_.boot_ns()), last_ns_(start_ns_) {
    child_.board().go = true;
  }

  Status record(double seconds, double tick_s) {
    const int64_t end_ns = clock_.boot_ns() + static_cast<int64_t>(seconds * kNsPerS);
    while (clock_.boot_ns() < end_ns) {
      if (auto status = wait(tick_s); !status) return status;
      if (auto status = child_.alive(); !status) return status;
      if (auto status = tick(); !status) return status;
    }
    return {};
  }
  double elapsed_s() const { return seconds(clock_.boot_ns() - start_ns_); }

 private:
  static double seconds(int64_t ns) { return static_cast<double>(ns) / kNsPerS; }

  Status tick() {
    const uint64_t operations = child_.board().operations;
    const int64_t now_ns = clock_.boot_ns();
    const auto placed = pages_.look();
    if (!placed) return tl::unexpected(placed.error());
    run_.ticks.push_back({.at_s = seconds(now_ns - start_ns_),
                          .operations_per_s = static_cast<double>(operations - last_operations_) /
                                              seconds(now_ns - last_ns_),
                          .placed = *placed});
    run_.operations = static_cast<double>(operations);
    run_.seconds = seconds(now_ns - start_ns_);
    last_operations_ = operations;
    last_ns_ = now_ns;
    return {};
  }

  SystemPacer clock_;
  Child& child_;
  PlacedPages& pages_;
  RowRun& run_;
  const int64_t start_ns_;
  int64_t last_ns_;
  uint64_t last_operations_ = 0;
};

Status prepare_room(RowKind kind, const RowOptions& options, Stage& stage) {
  if (kind != RowKind::kAllFast && kind != RowKind::kAllFar)
    return stage.room.leave(options.fast_bytes);
  stage.room.release();
  return {};
}

// Two phases for the program whose hot set changes place, else one as long as both.
Status record_phases(RowKind kind, const RowOptions& options, Stage& stage, Child& child,
                     PlacedPages& pages, RowRun& run) {
  const auto arrange = [&]() -> Status {
    return kind == RowKind::kByHand ? pages.arrange(stage.slow_node()) : Status{};
  };
  const bool moves = kind == RowKind::kKernel || kind == RowKind::kTierpilot;
  const double phase_s = options.phase_s * (moves ? 1 : kNothingMoves);
  if (auto status = arrange(); !status) return status;
  Recorder recorder(child, pages, run);
  if (auto status = recorder.record(phase_s, options.tick_s); !status) return status;
  if (options.program.kind == ProgramKind::kHotSet) {
    child.board().hot_quarter = kNextHotQuarter;
    pages.set_hot_quarter(kNextHotQuarter);
    run.changed_at_s = recorder.elapsed_s();
    if (auto status = arrange(); !status) return status;
  }
  return recorder.record(phase_s, options.tick_s);
}

}  // namespace

std::string_view row_name(RowKind kind) {
  for (const auto& [known, name] : kRowNames)
    if (known == kind) return name;
  return "unknown";
}

std::optional<RowKind> row_from_name(std::string_view name) {
  for (const auto& [kind, known] : kRowNames)
    if (known == name) return kind;
  return {};
}

Result<RowRun> run_row(RowKind kind, const RowOptions& options, Stage& stage) {
  if (auto status = prepare_room(kind, options, stage); !status)
    return tl::unexpected(status.error());
  std::unique_ptr<KernelTiering> tiering;
  if (kind == RowKind::kKernel) {
    auto enabled = KernelTiering::enable(stage.sysroot, stage.fast_node());
    if (!enabled) return tl::unexpected(enabled.error());
    tiering = std::move(*enabled);
  }
  ProgramOptions program = options.program;
  if (kind == RowKind::kAllFast) program.node = stage.fast_node();
  if (kind == RowKind::kAllFar) program.node = stage.slow_node();
  const auto child = Child::start(program);
  if (!child) return tl::unexpected(child.error());
  PlacedPages pages(system_page_kernel(), program, (*child)->pid(), (*child)->board().data_start,
                    stage.fast_node());
  RowRun run;
  const auto kernel_before = read_kernel_counters(stage.sysroot);
  const auto cpu_before = cpu_times(stage.sysroot, (*child)->pid());
  std::optional<Tierpilot> tierpilot;
  if (kind == RowKind::kTierpilot) {
    tierpilot.emplace(stage, options.loop);
    if (auto status = tierpilot->start((*child)->pid()); !status)
      return tl::unexpected(status.error());
    run.tracker = tierpilot->tracker();
  }
  auto status = record_phases(kind, options, stage, **child, pages, run);
  if (!status) return tl::unexpected(status.error());
  run.kernel = read_kernel_counters(stage.sysroot) - kernel_before;
  if (tierpilot) run.loop = tierpilot->stop();
  const auto cpu = cpu_times(stage.sysroot, (*child)->pid());
  run.program_cpu = {cpu.user_s - cpu_before.user_s, cpu.system_s - cpu_before.system_s};
  run.wrong_answers = (*child)->board().wrong;
  return run;
}

}  // namespace tierpilot::bench
