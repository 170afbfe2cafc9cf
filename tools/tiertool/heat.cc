// tiertool heat show|dump PID: which memory of a process is in use, and how much.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/output/arguments.h"
#include "tools/tiertool/heat_picture.h"
#include "tools/tiertool/watching.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
constexpr size_t kLineWidth = 64;

struct HeatCommand {
  WatchOptions watch;
  std::string svg;
  size_t limit = 24;
};

ordered_json summary_of(const Watch& watch) {
  return {{"pid", watch.view.target.pid},
          {"tracker", tracker_to_json(watch)},
          {"watched_s", watch.watched_s},
          {"rounds", watch.counters.rounds},
          {"tracked_bytes", watch.view.tracked_bytes},
          {"heat_map_bytes", watch.view.heat_map_bytes},
          {"cpu_ns", watch.counters.cpu_ns},
          {"tracker_cpu_ns", watch.counters.tracker_cpu_ns}};
}

Table summary_table() {
  return {.columns = {{"tracker", "/tracker/name"},
                      {"by way", "/tracker/way"},
                      {"resolution", "/tracker/resolution"},
                      {"does not see", "/tracker/blind_spots"},
                      {"watched s", "/watched_s", Format::kNumber},
                      {"tracked", "/tracked_bytes", Format::kBytes},
                      {"heat map", "/heat_map_bytes", Format::kBytes}}};
}

const Table kOthersTable{.title = "other trackers",
                         .rows = "/tracker/others",
                         .columns = {{"TRACKER", "/name"}, {"STATE", "/state"}}};

std::vector<std::string> warnings_of(const Watch& watch) {
  std::vector<std::string> warnings;
  if (!watch.view.trouble.empty()) warnings.push_back(watch.view.trouble);
  if (!watch.tracker.traits.sees_repeats)
    warnings.emplace_back(
        "the tracker sees no access to memory that is in use already: cold here "
        "does not mean unused");
  return warnings;
}

Status write_svg(const std::string& path, const Watch& watch) {
  std::ofstream file(path);
  file << heat_svg(watch.frames, fmt::format("heat of process {} by {}", watch.view.target.pid,
                                             tracker_name(watch.tracker.traits.kind)));
  file.close();
  if (!file) return fail_errno(errno, fmt::format("picture '{}'", path));
  return {};
}

int show(const Context& context, const HeatCommand& options) {
  auto watching = options.watch;
  watching.keep_frames = !options.svg.empty();
  // Before an hour of watching.
  if (watching.keep_frames && !std::ofstream(options.svg, std::ios::app))
    return print_error(context.output,
                       fail_errno(errno, fmt::format("picture '{}'", options.svg)).value());
  const auto watch = watch_process(context, watching);
  if (!watch) return print_error(context.output, watch.error());
  if (!options.svg.empty())
    if (auto status = write_svg(options.svg, *watch); !status)
      return print_error(context.output, status.error());
  auto value = summary_of(*watch);
  value["hottest"] = hottest_of(watch->view.regions);
  auto stretches = stretches_of(watch->view.regions);
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
  if (stretches.size() > options.limit) stretches.resize(options.limit);
  value["stretches"] = ordered_json::array();
  for (const auto& stretch : stretches)
    value["stretches"].push_back(
        {{"start", fmt::format("{:#x}", stretch.start)},
         {"bytes", stretch.bytes()},
         {"heat", "|" +
                      heat_line(watch->view.regions, stretch.start, stretch.end, kLineWidth,
                                hottest_of(watch->view.regions)) +
                      "|"}});
  return print(
      context.output, value,
      {summary_table(),
       kOthersTable,
       {.title = "from ' ' (nothing seen) and '.' to '@' (hottest), logarithmic; '?' is "
                 "not known",
        .rows = "/stretches",
        .columns = {{"START", "/start"}, {"SIZE", "/bytes", Format::kBytes}, {"HEAT", "/heat"}},
        .empty = "Nothing of the process is tracked."}},
      warnings_of(*watch));
}

int dump(const Context& context, const HeatCommand& options) {
  const auto watch = watch_process(context, options.watch);
  if (!watch) return print_error(context.output, watch.error());
  auto value = summary_of(*watch);
  value["regions"] = ordered_json::array();
  for (const auto& region : watch->view.regions) {
    ordered_json row{{"start", fmt::format("{:#x}", region.start)},
                     {"end", fmt::format("{:#x}", region.end)},
                     {"bytes", region.bytes()},
                     {"page_bytes", region.page_bytes()},
                     {"updates", region.updates}};
    set_or_unavailable(row, "accesses_per_page_s",
                       region.updates ? std::optional<double>(region.heat) : std::nullopt,
                       "unavailable: not looked at yet");
    value["regions"].push_back(std::move(row));
  }
  return print(context.output, value,
               {summary_table(),
                {.rows = "/regions",
                 .columns = {{"START", "/start"},
                             {"END", "/end"},
                             {"SIZE", "/bytes", Format::kBytes},
                             {"PAGE", "/page_bytes", Format::kBytes},
                             {"ACCESSES per page and s", "/accesses_per_page_s", Format::kNumber}},
                 .empty = "Nothing of the process is tracked."}},
               warnings_of(*watch));
}

}  // namespace

void add_heat(CLI::App& app, Context& context) {
  auto* heat = app.add_subcommand("heat", "how much a process uses which memory");
  heat->require_subcommand(1);
  auto* show_verb = heat->add_subcommand("show", "watch a process and draw its heat map");
  auto options = std::make_shared<HeatCommand>();
  add_watch_options(*show_verb, options->watch);
  show_verb->add_option("--svg", options->svg, "also draw heat over time into FILE")
      ->type_name("FILE");
  show_verb->add_option("--limit", options->limit, "stretches of memory to show, largest first")
      ->check(whole_number())
      ->capture_default_str();
  show_verb->callback([&context, options] {
    context.command = [&context, options] { return show(context, *options); };
  });
  auto* dump_verb = heat->add_subcommand("dump", "watch a process and list its regions");
  auto dump_options = std::make_shared<HeatCommand>();
  add_watch_options(*dump_verb, dump_options->watch);
  dump_verb->callback([&context, dump_options] {
    context.command = [&context, dump_options] { return dump(context, *dump_options); };
  });
}

}  // namespace tierpilot::tiertool
