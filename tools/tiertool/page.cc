// tiertool page show PID: on which NUMA nodes a process has its pages.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/memory/heat/numa_maps.h"
#include "daemon/memory/loop/tiers.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct ShowOptions {
  pid_t pid = 0;
  size_t limit = 30;
};

std::string tier_of(const std::vector<PagingTier>& tiers, int node) {
  for (const auto& tier : tiers)
    if (std::find(tier.nodes.begin(), tier.nodes.end(), node) != tier.nodes.end()) return tier.name;
  return "none";
}

ordered_json node_rows(const std::vector<MappingNodes>& mappings,
                       const std::vector<PagingTier>& tiers) {
  std::map<int, uint64_t> bytes_on;
  uint64_t all = 0;
  for (const auto& mapping : mappings) {
    all += mapping.bytes();
    for (const auto& [node, pages] : mapping.pages_on_node)
      bytes_on[node] += pages * mapping.page_bytes;
  }
  ordered_json rows = ordered_json::array();
  for (const auto& [node, bytes] : bytes_on)
    rows.push_back({{"node", node},
                    {"tier", tier_of(tiers, node)},
                    {"bytes", bytes},
                    {"share", all ? static_cast<double>(bytes) / static_cast<double>(all) : 0}});
  return rows;
}

ordered_json mapping_row(const MappingNodes& mapping) {
  ordered_json row{{"start", fmt::format("{:#x}", mapping.start)},
                   {"policy", mapping.policy},
                   {"page_bytes", mapping.page_bytes},
                   {"bytes", mapping.bytes()},
                   {"bytes_on_node", ordered_json::object()},
                   {"name", mapping.name.empty() ? "anonymous" : mapping.name}};
  for (const auto& [node, pages] : mapping.pages_on_node)
    row["bytes_on_node"][std::to_string(node)] = pages * mapping.page_bytes;
  return row;
}

std::vector<Column> mapping_columns(const ordered_json& nodes) {
  std::vector<Column> columns{{"START", "/start"}, {"RESIDENT", "/bytes", Format::kBytes}};
  for (const auto& node : nodes) {
    const auto id = std::to_string(node["node"].get<int>());
    columns.push_back({"NODE " + id, "/bytes_on_node/" + id, Format::kBytes});
  }
  columns.push_back({"PAGE", "/page_bytes", Format::kBytes});
  columns.push_back({"POLICY", "/policy"});
  columns.push_back({"NAME", "/name"});
  return columns;
}

int show(const Context& context, const ShowOptions& options) {
  auto mappings = read_numa_maps(context.sysroot, options.pid);
  if (!mappings) return print_error(context.output, mappings.error());
  std::vector<PagingTier> tiers;
  if (const auto topology = discover_topology(context.sysroot, {.nvml_library = {}}))
    tiers = make_paging_tiers(*topology).tiers;
  std::stable_sort(mappings->begin(), mappings->end(),
                   [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
  ordered_json value{{"pid", options.pid}, {"nodes", node_rows(*mappings, tiers)}};
  const size_t shown = context.output.json ? mappings->size() : options.limit;
  value["mappings"] = ordered_json::array();
  for (const auto& mapping : *mappings)
    if (value["mappings"].size() < shown) value["mappings"].push_back(mapping_row(mapping));
  const auto left = mappings->size() - value["mappings"].size();
  return print(
      context.output, value,
      {{.title = fmt::format("pages of process {}", options.pid),
        .rows = "/nodes",
        .columns = {{"NODE", "/node"},
                    {"TIER", "/tier"},
                    {"RESIDENT", "/bytes", Format::kBytes},
                    {"SHARE", "/share", Format::kPercent}},
        .empty = "The process has no resident pages."},
       {.title = left ? fmt::format("the {} largest mappings of {}", shown, mappings->size()) : "",
        .rows = "/mappings",
        .columns = mapping_columns(value["nodes"]),
        .empty = "no mappings"}});
}

}  // namespace

void add_page(CLI::App& app, Context& context) {
  auto* page = app.add_subcommand("page", "where a process has its pages");
  page->require_subcommand(1);
  auto* verb = page->add_subcommand("show", "resident memory by node, tier and mapping");
  auto options = std::make_shared<ShowOptions>();
  verb->add_option("pid", options->pid, "process id")->required()->check(process_number());
  verb->add_option("--limit", options->limit, "mappings in the table (JSON has all)")
      ->check(whole_number())
      ->capture_default_str();
  verb->callback([&context, options] {
    context.command = [&context, options] { return show(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
