// tierpilot-swap: trains under a memory budget without a change to the program, and says what there
// is to swap to.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "policies/swap/graph_builder.h"
#include "policies/swap/learning/choice.h"
#include "policies/swap/learning/kept_plans.h"
#include "swap/tiers/tier_list.h"
#include "tools/output/arguments.h"
#include "tools/output/python_command.h"

namespace {

using namespace tierpilot;
namespace fs = std::filesystem;

struct Options {
  std::string budget, policy = "swap", device, tiers, report, plans;
  bool recompute = false;
  bool states = false, no_states = false;  // neither: as the policy says
  std::vector<std::string> command;
};

// Beside the program: as installed, or as in the build folder of a source tree.
struct Places {
  fs::path library, boot;
};

Result<Places> find_places() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error).parent_path();
  const Places candidates[] = {
      {program / ".." / TIERPILOT_LIBDIR / "libtierpilot-swap.so.0",
       program / "../lib/python3/dist-packages/tierpilot/swapping/boot"},
      {program / "../../swap/libtierpilot-swap.so.0",
       program / "../../../python/tierpilot/swapping/boot"},
  };
  for (const auto& [library, boot] : candidates)
    if (fs::exists(library, error) && fs::exists(boot, error))
      return Places{fs::weakly_canonical(library), fs::weakly_canonical(boot)};
  return fail(ErrorCode::kNotFound,
              "libtierpilot-swap and its Python module are not beside this program: reinstall it");
}

void set(const char* name, const std::string& value) {
  if (value.empty())
    unsetenv(name);
  else
    setenv(name, value.c_str(), 1);
}

// What is found has to be usable before the program starts: else it would end in its first pass.
Status check_found_tiers(const Options& options) {
  if (!options.tiers.empty() || options.device.starts_with("cuda")) return {};
  const auto found = swap::found_tiers(*swap::processor());
  // If nothing is said of a device, it may train on a GPU, and leave for this host's memory.
  if (found || (options.device.empty() && swap::open_device("cuda"))) return {};
  return tl::unexpected(found.error());
}

// What is wrong with a file to be written at the end of a training; empty: nothing. A plan file is
// replaced by a new one beside it, a report appended to.
std::string file_fault(const std::string& said, bool replaced) {
  constexpr int kMostLinks = 40;
  if (said.empty()) return "it has no name";
  std::error_code error;
  auto path = fs::absolute(said, error);
  if (error) return fmt::format("'{}': the folder that this runs in is gone", said);
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, error); ++links)
    path = path.parent_path() / fs::read_symlink(path, error);
  const auto there = fs::status(path, error);
  const auto folder = path.parent_path().string();
  if (!fs::exists(there) && !fs::is_directory(folder, error))
    return fmt::format("'{}': there is no folder '{}'", said, folder);
  if (fs::is_directory(there) || (replaced && fs::exists(there) && !fs::is_regular_file(there)))
    return fmt::format("'{}' is no plain file: name another one", said);
  if (replaced && fs::exists(there)) {
    std::array<char, 64> head{};
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), head.size());
    if (!swap::may_be_plans({head.data(), static_cast<size_t>(file.gcount())}))
      return fmt::format("'{}' is no plan file: name another one, or remove it", said);
  }
  const bool usable = fs::exists(there) && !replaced ? access(path.c_str(), W_OK) == 0
                                                     : access(folder.c_str(), W_OK | X_OK) == 0;
  return usable ? "" : fmt::format("'{}' cannot be written: {}", said, std::strerror(errno));
}

int run(const Output& output, const Options& options) {
  const auto places = find_places();
  if (!places) return print_error(output, places.error());
  if (const auto status = check_found_tiers(options); !status)
    return print_error(output, status.error());
  const char* path = std::getenv("PYTHONPATH");
  set("PYTHONPATH", places->boot.string() + (path && *path ? ":" + std::string(path) : ""));
  set("TIERPILOT_SWAP_LIBRARY", places->library.string());
  set("TIERPILOT_SWAP_BUDGET", options.budget);
  set("TIERPILOT_SWAP_RECORD", "");
  set("TIERPILOT_SWAP_POLICY", options.policy);
  set("TIERPILOT_SWAP_DEVICE", options.device);
  set("TIERPILOT_SWAP_TIERS", options.tiers);
  set("TIERPILOT_SWAP_REPORT", options.report.empty() ? "" : fs::absolute(options.report).string());
  set("TIERPILOT_SWAP_PLANS", options.plans.empty() ? "" : fs::absolute(options.plans).string());
  set("TIERPILOT_SWAP_RECOMPUTE", options.recompute ? "1" : "");
  set("TIERPILOT_SWAP_STATES", options.states ? "1" : options.no_states ? "0" : "");
  std::vector<char*> arguments;
  for (const auto& word : options.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const auto error = fail_errno(errno, "'" + options.command.front() + "' cannot be started");
  return print_error(output, error.value());
}

int show_tiers(const Output& output, const Options& options) {
  auto device = swap::open_device(options.device);
  if (!device) return print_error(output, device.error());
  auto tiers = options.tiers.empty() ? swap::found_tiers(**device)
                                     : swap::tiers_of(options.tiers, swap::pages_for(**device));
  if (!tiers) return print_error(output, tiers.error());
  const auto measured = swap::measured(std::move(*tiers), **device);
  if (!measured) return print_error(output, measured.error());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (!(*device)->runs_ahead())
    list.push_back(
        {{"name", "this process"}, {"kind", "memory"}, {"copy_gb_per_s", swap::memory_gb_per_s()}});
  for (const auto& tier : *measured)
    list.push_back({{"name", tier.tier->name()},
                    {"kind", tier.tier->kind()},
                    {"capacity_bytes", tier.tier->capacity_bytes()},
                    {"write_gb_per_s", tier.write_gb_per_s},
                    {"read_gb_per_s", tier.read_gb_per_s},
                    {"latency_us", static_cast<double>(tier.latency_ns) / 1e3}});
  const auto warning = swap::warning_about(*measured);
  return print(output, {{"tiers", list}},
               {{.rows = "/tiers",
                 .columns = {{"TIER", "/name"},
                             {"KIND", "/kind"},
                             {"CAPACITY", "/capacity_bytes", Format::kBytes},
                             {"COPY GB/s", "/copy_gb_per_s", Format::kNumber},
                             {"OUT GB/s", "/write_gb_per_s", Format::kNumber},
                             {"IN GB/s", "/read_gb_per_s", Format::kNumber},
                             {"LATENCY us", "/latency_us", Format::kNumber}}}},
               warning.empty() ? std::vector<std::string>() : std::vector{warning});
}

CLI::App* add_run(CLI::App& app, Options& options) {
  auto* run = app.add_subcommand("run", "run a program within a memory budget");
  run->add_option("--budget", options.budget,
                  "resident memory of the process, as 4GiB; workers of torchrun divide it")
      ->type_name("SIZE")
      ->envname("TIERPILOT_SWAP_BUDGET")
      ->check([](const std::string& text) {
        const auto bytes = parse_bytes(text);
        if (!bytes) return bytes.error().message;
        if (*bytes == 0 || *bytes > uint64_t{swap::kMaxBytes})
          return std::string("the budget has to be above 0 and at most 1024TiB");
        // The least tensor that may leave has so many: whoever says less means another unit.
        return *bytes < 64 << 10
                   ? fmt::format("a budget of {} bytes holds no tensor: say a unit, as 4GiB",
                                 *bytes)
                   : "";
      });
  std::vector<std::string> names;
  for (const auto& rule : swap::choice_rules()) names.emplace_back(rule.name);
  run->add_option("--policy", options.policy, "who decides what leaves")
      ->type_name("swap|none|swap-all|vdnn|capuchin|q-published|checkpoint")
      ->check(CLI::IsMember(names).description(""));
  run->add_option("--report", options.report,
                  "append statistics to it at the end, a JSON object a process")
      ->type_name("FILE")
      ->check([](const std::string& file) { return file_fault(file, false); });
  run->add_flag("--recompute", options.recompute,
                "let blocks of the model be computed again where that is cheaper");
  auto* states = run->add_flag(
      "--states", options.states,
      "let states of optimisers leave between their steps, as policy swap does on a processor");
  run->add_flag("--no-states", options.no_states, "let them stay")->excludes(states);
  run->add_option("--plan-file", options.plans,
                  "start from what an earlier run learned, and keep what this one does")
      ->type_name("FILE")
      ->check([](const std::string& file) { return file_fault(file, true); });
  run->add_option("command", options.command, "the program and its arguments, after --")
      ->required();
  run->callback([&options] {
    if (options.budget.empty())
      throw CLI::ValidationError(
          "there is no budget: say --budget SIZE, or set TIERPILOT_SWAP_BUDGET, which a task with "
          "--memory and --swap-room has");
    if (const auto status = reads_pythonpath(options.command); !status)
      throw CLI::ValidationError(status.error().message);
  });
  return run;
}

void add_places(CLI::App& command, Options& options) {
  command
      .add_option("--device", options.device,
                  "what trains, whose memory is scarce; if it is not said, for run that of the "
                  "first tensor that could leave, else the processor")
      ->type_name("cpu|cuda|cuda:N")
      ->envname("TIERPILOT_SWAP_DEVICE")
      ->check([](const std::string& name) {
        const bool numbered = name.starts_with("cuda:") && name.size() > 5 && name.size() < 9 &&
                              name.find_first_not_of("0123456789", 5) == std::string::npos;
        const bool known = name == "cpu" || name == "cuda" || numbered;
        return known ? "" : fmt::format("device '{}' is not known: say cpu, cuda or cuda:N", name);
      });
  command.add_option("--tiers", options.tiers, "where to, as node1=2GiB,dir:/srv/slow=16GiB")
      ->type_name("LIST")
      ->envname("TIERPILOT_SWAP_TIERS")
      ->check([](const std::string& list) {
        const auto tiers = swap::tiers_of(list);
        return tiers ? std::string() : tiers.error().message;
      });
}

}  // namespace

int main(int argc, char** argv) {
  Output output;
  Options options;
  CLI::App app{"Trains PyTorch models in less memory: tensors that are not needed leave it.",
               "tierpilot-swap"};
  app.require_subcommand(1);
  auto* run_command = add_run(app, options);
  auto* tiers_command = app.add_subcommand("tiers", "measure what there is to swap to");
  for (auto* command : {run_command, tiers_command}) add_places(*command, options);
  if (const auto code = parse_arguments(app, argc, argv, output)) return *code;
  return run_command->parsed() ? run(output, options) : show_tiers(output, options);
}
