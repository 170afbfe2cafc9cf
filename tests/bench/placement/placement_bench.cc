// Page placement held against the kernel's and against what is possible: see
// docs/results/paging.md.
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "daemon/memory/loop/tiers.h"
#include "daemon/topology/discover.h"
#include "tests/bench/placement/summary.h"
#include "tools/output/arguments.h"
#include "tools/output/output.h"

namespace tierpilot::bench {
namespace {

using nlohmann::ordered_json;

constexpr int kExitSkipped = 77;

struct Settings {
  std::string bytes = "64MiB", fast = "18MiB";
  std::vector<std::string> programs{"hot-set", "streaming", "key-value"};
  std::vector<std::string> rows{"all fast", "all far", "first touch",
                                "by hand",  "kernel",  "tierpilot"};
  int rounds = 3;
  double phase_s = 12;
  double interval_s = 1;
  double half_life_s = HeatOptions{}.half_life_s;
  double cpu_percent = LoopOptions{}.cpu_share * 100;
  bool timelines = false;
  std::string report;
};

struct Work {
  std::string program;
  uint64_t bytes = 0;
  int node = -1;
  int board = -1;
};

Result<RowOptions> compile(const Settings& settings) {
  const auto bytes = parse_bytes(settings.bytes), fast = parse_bytes(settings.fast);
  if (!bytes) return tl::unexpected(bytes.error());
  if (!fast) return tl::unexpected(fast.error());
  RowOptions options{
      .program = {.bytes = *bytes}, .phase_s = settings.phase_s, .fast_bytes = *fast};
  options.loop.interval_ns = static_cast<int64_t>(settings.interval_s * 1e9);
  options.loop.heat.half_life_s = settings.half_life_s;
  options.loop.cpu_share = settings.cpu_percent / 100;
  return options;
}

// With the first node as small as it is for the program.
Result<std::vector<PagingTier>> find_tiers(const Sysroot& sysroot) {
  const auto topology = discover_topology(sysroot, {.nvml_library = {}});
  if (!topology) return tl::unexpected(topology.error());
  auto tiers = make_paging_tiers(*topology).tiers;
  if (tiers.size() < 2)
    return fail(ErrorCode::kUnavailable,
                "unavailable: one memory tier, so there is nothing to place; tests/vm/run --bench "
                "placement runs it on an emulated machine with two");
  return tiers;
}

ProgramRound run_round(ProgramKind program, const Settings& settings, RowOptions options,
                       Stage& stage) {
  ProgramRound round{.program = program, .rows = {}};
  options.program.kind = program;
  for (const auto& name : settings.rows) {
    const RowKind kind = *row_from_name(name);
    round.rows.emplace_back(kind, run_row(kind, options, stage));
    const auto& run = round.rows.back().second;
    fmt::print(
        stderr, "{:<10} {:<12} {}\n", program_name(program), name,
        run ? fmt::format("{:.0f} operations/s, {:.1f} MiB moved", run->operations / run->seconds,
                          static_cast<double>(run->kernel.migrated_pages) / 256)
            : run.error().message);
  }
  return round;
}

Table table_of(const ordered_json& value, size_t program) {
  return {.title = value["programs"][program]["program"].get<std::string>(),
          .rows = fmt::format("/programs/{}/rows", program),
          .columns = {{"ROW", "/row"},
                      {"STEADY / ORACLE", "/steady_to_oracle/median", Format::kPercent},
                      {"WHOLE / ORACLE", "/whole_to_oracle/median", Format::kPercent},
                      {"ACCESSES FAST", "/fast_access_share/median", Format::kPercent},
                      {"RECALL", "/hot_set_recall/median", Format::kPercent},
                      {"PRECISION", "/hot_set_precision/median", Format::kPercent},
                      {"ARRIVED s", "/hot_set_arrived_s/median", Format::kNumber},
                      {"FOLLOWED s", "/hot_set_followed_s/median", Format::kNumber},
                      {"MOVED", "/moved_bytes/median", Format::kBytes},
                      {"HELPERS' CPU", "/helper_cpu_share/median", Format::kPercent},
                      {"PROGRAM'S SYSTEM CPU", "/program_system_share/median", Format::kPercent}}};
}

// What the machine has lying about on the fast node (the system's files, say) would go down in the
// kernel's row first, which would have more fast memory than the others.
Status demote_idle_memory(const Sysroot& sysroot, FastRoom& room, int node) {
  const auto tiering = KernelTiering::enable(sysroot, node);
  if (!tiering) return {};
  uint64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 0)
      if (auto status = room.leave(0); !status) return status;
    if (auto status = room.press(4 << 20); !status) return status;
    ::usleep(100'000);
    const uint64_t demoted = read_kernel_counters(sysroot).demoted_pages;
    if (i > 2 && demoted == std::exchange(before, demoted)) break;
  }
  room.release();
  return {};
}

void hold_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void keep_to_last_cpu() {
  cpu_set_t last;
  CPU_ZERO(&last);
  CPU_SET(static_cast<size_t>(::sysconf(_SC_NPROCESSORS_ONLN) - 1), &last);
  ::sched_setaffinity(0, sizeof last, &last);
}

// Before main() memkind's allocator takes memory, of which the kernel would make huge pages
// wherever it finds any: 6 MiB of the fast node, or nothing.
void give_programs_no_huge_pages() {
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

int compare(const Settings& settings, const Output& output) {
  const Sysroot sysroot;
  auto tiers = find_tiers(sysroot);
  if (!tiers) {
    print_error(output, tiers.error());
    return kExitSkipped;
  }
  auto options = compile(settings);
  if (!options) return print_error(output, options.error());
  FastRoom room(sysroot, tiers->front().nodes.front());
  const auto watermark = room.watermark_bytes();
  if (!watermark) return print_error(output, watermark.error());
  // The rest of the node counts as not there, and the same is left free as first touch leaves.
  tiers->front().capacity_bytes = options->fast_bytes + *watermark;
  options->loop.limits.reserve_share =
      static_cast<double>(*watermark) / static_cast<double>(tiers->front().capacity_bytes);
  hold_signals();
  keep_to_last_cpu();
  give_programs_no_huge_pages();
  if (auto status = demote_idle_memory(sysroot, room, tiers->front().nodes.front()); !status)
    return print_error(output, status.error());
  Stage stage{.sysroot = sysroot, .tiers = *tiers, .room = room};
  std::vector<ProgramRound> rounds;
  for (int i = 0; i < settings.rounds; ++i)
    for (const auto& program : settings.programs)
      rounds.push_back(run_round(*program_from_name(program), settings, *options, stage));
  auto value = summarise(rounds);
  value["fast_bytes"] = options->fast_bytes;
  value["bytes"] = options->program.bytes;
  if (settings.timelines) value["timelines"] = timelines(rounds);
  if (!settings.report.empty()) std::ofstream(settings.report) << value.dump(2) << "\n";
  std::vector<Table> tables;
  for (size_t p = 0; p < value["programs"].size(); ++p) tables.push_back(table_of(value, p));
  return print(output, value, tables);
}

int work(const Work& work) {
  const auto kind = program_from_name(work.program);
  if (!kind) return kExitUsage;
  ProgramOptions options{.kind = *kind, .bytes = work.bytes};
  if (work.node >= 0) options.node = work.node;
  return run_program(options, work.board);
}

template <class FromName>
CLI::Validator named(FromName from_name, const char* what) {
  return CLI::Validator(
      [=](const std::string& name) {
        return from_name(name) ? std::string() : fmt::format("no {} '{}'", what, name);
      },
      "");
}

void add_options(CLI::App& app, Settings& settings) {
  app.add_option("--bytes", settings.bytes, "memory of the program")->capture_default_str();
  app.add_option("--fast", settings.fast, "fast memory for it")->capture_default_str();
  app.add_option("--programs", settings.programs, "hot-set, streaming, key-value")
      ->delimiter(',')
      ->check(named(program_from_name, "program"));
  app.add_option("--rows", settings.rows,
                 "all fast, all far, first touch, by hand, kernel, tierpilot")
      ->delimiter(',')
      ->check(named(row_from_name, "row"));
  app.add_option("--rounds", settings.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--seconds", settings.phase_s, "half of a row's time; the hot set moves then")
      ->check(CLI::Range(0.5, 3600.0));
  app.add_option("--interval", settings.interval_s, "of the loop")->check(CLI::Range(0.05, 60.0));
  app.add_option("--half-life", settings.half_life_s)->check(CLI::Range(0.1, 3600.0));
  app.add_option("--cpu", settings.cpu_percent)->check(CLI::Range(0.0, 100.0));
  app.add_option("--report", settings.report, "file that gets the JSON too");
  app.add_flag("--timelines", settings.timelines, "every tick of every run (with -j)");
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  using namespace tierpilot;
  bench::Settings settings;
  bench::Work work;
  Output output;
  CLI::App app("Holds Tierpilot's page placement against the kernel's and against all-fast memory");
  add_options(app, settings);
  auto* child = app.add_subcommand("work", "the measured program; used by the benchmark itself");
  child->add_option("program", work.program)->required();
  child->add_option("--bytes", work.bytes)->required();
  child->add_option("--node", work.node);
  child->add_option("--board", work.board)->required();
  if (const auto done = parse_arguments(app, argc, argv, output)) return *done;
  return child->parsed() ? bench::work(work) : bench::compare(settings, output);
}
