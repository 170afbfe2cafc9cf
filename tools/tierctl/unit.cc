// tierctl unit: what gangs compute on, and how often it fails. `rates` is the laboratory's.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cluster/message_json.h"
#include "tools/cluster/pages.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

struct Order {
  std::string unit, reason;
};

std::vector<Column> columns_of(bool gpus, bool cores) {
  std::vector<Column> columns{{"UNIT", "/id"},
                              {"STATE", "/state"},
                              {"TASK", "/task"},
                              {"SHARED BY (THOUSANDTHS)", "/shared_by"},
                              {"FAILURES", "/failures", Format::kNumber},
                              {"RATE/h", "/rate_per_hour", Format::kNumber},
                              {"LOW", "/rate_low", Format::kNumber},
                              {"HIGH", "/rate_high", Format::kNumber}};
  if (gpus)
    columns.insert(columns.end(), {{"C", "/temperature_c", Format::kNumber},
                                   {"MEMORY USED", "/memory_bytes", Format::kBytes},
                                   {"BUSY %", "/busy_percent", Format::kNumber}});
  if (cores) columns.push_back({"CORES", "/cores", Format::kNumber});
  columns.push_back({"REASON", "/reason"});
  return columns;
}

ordered_json unit_json(const Context& context, wire::UnitEntry::Reader entry) {
  auto unit = message_json(entry);
  if (unit["cores"] == 0) unit["cores"] = nullptr;  // they are not shared
  if (context.output.json) return unit;
  // For people: no task has the number 0.
  if (unit["task"] == 0) unit["task"] = nullptr;
  // Older coordinators do not tell how much each has.
  if (!unit["shares"].empty()) unit["shared_by"] = ordered_json::array();
  for (const auto& part : unit["shares"])
    unit["shared_by"].push_back(
        fmt::format("{} ({})", part["task"].get<uint64_t>(), part["milli"].get<uint32_t>()));
  return unit;
}

Result<int> list(Context& context, ClusterConnection& connection) {
  auto units = ordered_json::array();
  bool gpus = false, cores = false;
  auto listed = for_each_unit(connection, [&](wire::UnitEntry::Reader unit) {
    units.push_back(unit_json(context, unit));
    gpus = gpus || units.back()["engine"] == "gpu";
    cores = cores || !units.back()["cores"].is_null();
  });
  if (!listed) return tl::unexpected(listed.error());
  return print(context.output, {{"units", units}},
               {{.rows = "/units",
                 .columns = columns_of(gpus, cores),
                 .empty = "no units: start tierpilotd on a machine"}});
}

std::vector<Table> unit_tables() {
  return {{.rows = "/unit",
           .columns = {{"Unit", "/id"},
                       {"Engine", "/engine"},
                       {"Node", "/node"},
                       {"State", "/state"},
                       {"Reason", "/reason"},
                       {"Task that has it", "/task"},
                       {"Shared", "/shared"},
                       {"Cores", "/cores", Format::kNumber},
                       {"Tasks that have parts of it (thousandths)", "/shared_by"},
                       {"Failures", "/failures", Format::kNumber},
                       {"Failures an hour, mean", "/rate_per_hour", Format::kNumber},
                       {"from (90 %)", "/rate_low", Format::kNumber},
                       {"to", "/rate_high", Format::kNumber},
                       {"Temperature C", "/temperature_c", Format::kNumber},
                       {"Memory used", "/memory_bytes", Format::kBytes},
                       {"Busy percent", "/busy_percent", Format::kNumber}}}};
}

Result<int> show(Context& context, ClusterConnection& connection, const std::string& id) {
  auto request = connection.cluster().unitShowRequest();
  request.setId(id);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  auto tables = unit_tables();
  tables.push_back(
      {.title = "Its failures, the newest first",
       .rows = "/failures",
       .columns = {{"WHEN", "/at_ms", Format::kTime}, {"WHAT", "/what"}, {"OF", "/why"}},
       .empty = "none"});
  return print(context.output,
               {{"unit", unit_json(context, answer->getUnit())},
                {"failures", messages_json(answer->getNotes())}},
               tables);
}

Result<int> give_order(Context& context, ClusterConnection& connection, const char* verb,
                       const Order& order) {
  auto request = connection.cluster().unitOrderRequest();
  request.setId(order.unit);
  request.setOrder(verb);
  request.setReason(order.reason);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"unit", unit_json(context, answer->getUnit())}}, unit_tables());
}

void add_order(CLI::App& unit, Context& context, const char* verb, const char* help) {
  auto order = std::make_shared<Order>();
  auto* sub = unit.add_subcommand(verb, help);
  sub->add_option("UNIT", order->unit, "NODE/cpu/NUMBER or NODE/gpu/UUID")->required();
  if (std::string_view(verb) == "drain")
    sub->add_option("--reason", order->reason, "shown with it (default: who ordered it)");
  on_chosen(*sub, context, [&context, order, verb](ClusterConnection& connection) {
    return give_order(context, connection, verb, *order);
  });
}

}  // namespace

void add_unit(CLI::App& app, Context& context) {
  auto* unit = app.add_subcommand("unit", "compute units and their failures");
  unit->require_subcommand(1);
  on_chosen(
      *unit->add_subcommand(
          "list",
          "units of gangs, and GPUs and cores that are shared: who has them, how often they fail"),
      context, [&context](ClusterConnection& connection) { return list(context, connection); });
  add_by_name(*unit, context, "show", "one unit and its last failures", show);
  add_order(*unit, context, "drain", "gangs get it no more; who has it keeps it");
  add_order(*unit, context, "resume", "gangs get it again; what counted against it is forgotten");
  add_unit_laboratory(*unit, context);
}

}  // namespace tierpilot::tierctl
