// tiertool map: the BPF maps of this project that are loaded on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "daemon/probe/inventory/inventory.h"
#include "daemon/probe/inventory/map_dump.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

int show_maps(const Context& context) {
  const auto maps = list_maps(context.sysroot);
  if (!maps) return print_error(context.output, maps.error());
  ordered_json rows = ordered_json::array();
  for (const auto& map : *maps)
    rows.push_back({{"id", map.id},
                    {"name", map.name},
                    {"type", map.type},
                    {"key_bytes", map.key_bytes},
                    {"value_bytes", map.value_bytes},
                    {"max_entries", map.max_entries},
                    {"typed", map.typed},
                    {"pids", map.holder_pids}});
  return print(context.output, {{"maps", std::move(rows)}},
               {{.rows = "/maps",
                 .columns = {{"ID", "/id"},
                             {"NAME", "/name"},
                             {"TYPE", "/type"},
                             {"KEY B", "/key_bytes"},
                             {"VALUE B", "/value_bytes"},
                             {"MAX ENTRIES", "/max_entries"},
                             {"TYPED", "/typed"},
                             {"PIDS", "/pids"}},
                 .empty = "No BPF map of this project is loaded: no node daemon observes."}});
}

// `which` is an id or a name; a name that several maps have (two daemons run) must be an id.
Result<LoadedMap> find_map(const std::vector<LoadedMap>& maps, const std::string& which) {
  std::vector<LoadedMap> found;
  std::string ids;
  for (const auto& map : maps) {
    if (which != map.name && which != std::to_string(map.id)) continue;
    found.push_back(map);
    ids += fmt::format("{}{}", ids.empty() ? "" : ", ", map.id);
  }
  if (found.empty())
    return fail(ErrorCode::kNotFound,
                fmt::format("map '{}': no BPF map of this project has that name or id: see "
                            "'tiertool map show'",
                            which));
  if (found.size() > 1)
    return fail(
        ErrorCode::kConflict,
        fmt::format("map '{}': several maps have that name: give one of the ids {}", which, ids));
  return found[0];
}

int dump(const Context& context, const std::string& which) {
  const auto maps = list_maps(context.sysroot);
  if (!maps) return print_error(context.output, maps.error());
  const auto map = find_map(*maps, which);
  if (!map) return print_error(context.output, map.error());
  const auto dumped = dump_map(map->id);
  if (!dumped) return print_error(context.output, dumped.error());
  ordered_json rows = ordered_json::array();
  for (const auto& [key, value] : dumped->elements)
    rows.push_back({{"key", key}, {"value", value}});
  std::vector<std::string> warnings;
  if (dumped->truncated)
    warnings.push_back(fmt::format("only the first {} elements are shown", rows.size()));
  return print(context.output,
               {{"id", map->id}, {"name", map->name}, {"elements", std::move(rows)}},
               {{.rows = "/elements",
                 .columns = {{"KEY", "/key"}, {"VALUE", "/value"}},
                 .empty = "The map has no elements."}},
               warnings);
}

}  // namespace

void add_map(CLI::App& app, Context& context) {
  auto* map = app.add_subcommand("map", "BPF maps with what was observed");
  map->require_subcommand(1);
  map->add_subcommand("show", "loaded maps")->callback([&context] {
    context.command = [&context] { return show_maps(context); };
  });
  auto* dump_verb = map->add_subcommand("dump", "elements of a map, decoded where it has types");
  auto which = std::make_shared<std::string>();
  dump_verb->add_option("map", *which, "name or id, as 'map show' lists them")->required();
  dump_verb->callback(
      [&context, which] { context.command = [&context, which] { return dump(context, *which); }; });
}

}  // namespace tierpilot::tiertool
