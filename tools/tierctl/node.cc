// tierctl node: the machines and what they measured.
#include <CLI/CLI.hpp>

#include "tools/cluster/message_json.h"
#include "tools/cluster/pages.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

const std::vector<Column> kTierColumns{{"TIER", "/tier"},
                                       {"KIND", "/kind"},
                                       {"ROLE", "/role"},
                                       {"PLACE", "/place"},
                                       {"SIZE", "/capacity_bytes", Format::kBytes},
                                       {"P50 ns", "/latency_ns/p50", Format::kNumber},
                                       {"P99 ns", "/latency_ns/p99", Format::kNumber},
                                       {"READ GB/s", "/read_gb_per_s", Format::kNumber},
                                       {"WRITE GB/s", "/write_gb_per_s", Format::kNumber},
                                       {"EVICT GB/s", "/evict_gb_per_s", Format::kNumber},
                                       {"PROMOTE GB/s", "/promote_gb_per_s", Format::kNumber}};

const std::vector<Column> kNodeColumns{
    {"Node", "/info/name"},
    {"State", "/state"},
    {"Tasks", "/order"},
    {"Drained by", "/drained_by_ms", Format::kTime},
    {"Reason", "/reason"},
    {"Host", "/info/hostname"},
    {"Version", "/info/version"},
    {"CPUs", "/info/cpus"},
    {"Compute units", "/info/units", Format::kNumber},
    {"Units assigned", "/assigned_units", Format::kNumber},
    {"Units kept back for it", "/kept_back_units", Format::kNumber},
    {"Memory for tasks", "/info/memory_bytes", Format::kBytes},
    {"Fast memory", "/info/fast_budget_bytes", Format::kBytes},
    {"Fast memory free", "/status/fast_free_bytes", Format::kBytes},
    {"Room for swapping", "/info/swap_room_bytes", Format::kBytes},
    {"Room for swapping given", "/assigned_swap_bytes", Format::kBytes},
    {"Slow memory", "/info/slow_budget_bytes", Format::kBytes},
    {"Slow memory free", "/status/slow_free_bytes", Format::kBytes},
    {"Eviction now GB/s", "/status/evict_gb_per_s", Format::kNumber},
    {"float32 operations/s", "/info/float32_ops_per_s", Format::kNumber},
    {"float per int32 operation", "/info/int32_to_float", Format::kNumber},
    {"Data address", "/info/data_address"},
    {"Daemon CPU, of one core", "/status/self_cpu_share", Format::kPercent},
    {"Daemon memory", "/status/self_resident_bytes", Format::kBytes},
    {"BPF run time, of one core", "/status/bpf_run_time_share", Format::kPercent},
    {"GPUs unavailable", "/info/gpus_unavailable"}};

const std::vector<Column> kGpuColumns{{"GPU", "/name"},
                                      {"UUID", "/uuid"},
                                      {"MEMORY", "/memory_bytes", Format::kBytes},
                                      {"CAPABILITY", "/compute_capability", Format::kNumber},
                                      {"CORES", "/cores", Format::kNumber},
                                      {"SM MHZ", "/sm_clock_mhz", Format::kNumber},
                                      {"MEMORY MHZ", "/memory_clock_mhz", Format::kNumber},
                                      {"BUS BITS", "/bus_width_bits", Format::kNumber}};

// What one that has not joined this coordinator is like nobody knows.
ordered_json node_json(wire::NodeEntry::Reader node) {
  auto value = message_json(node);
  if (node.getInfo().getUnits() > 0) return value;
  for (const char* part : {"info", "status"})
    for (auto& figure : value[part])
      if (figure.is_number()) figure = nullptr;
  return value;
}

Result<int> list_nodes(Context& context, ClusterConnection& connection) {
  auto nodes = ordered_json::array();
  auto listed = for_each_node(
      connection, [&](wire::NodeEntry::Reader node) { nodes.push_back(node_json(node)); });
  if (!listed) return tl::unexpected(listed.error());
  return print(context.output, {{"nodes", nodes}},
               {{.rows = "/nodes",
                 .columns = {{"NODE", "/info/name"},
                             {"STATE", "/state"},
                             {"TASKS", "/order"},
                             {"CPUS", "/info/cpus"},
                             {"UNITS", "/info/units", Format::kNumber},
                             {"UNITS GIVEN", "/assigned_units", Format::kNumber},
                             {"ATTEMPTS", "/tasks_running", Format::kNumber},
                             {"ENDED", "/tasks_done", Format::kNumber},
                             {"DATASETS", "/datasets", Format::kNumber},
                             {"FAST", "/info/fast_budget_bytes", Format::kBytes},
                             {"FAST FREE", "/status/fast_free_bytes", Format::kBytes},
                             {"SWAP ROOM", "/info/swap_room_bytes", Format::kBytes},
                             {"SWAP GIVEN", "/assigned_swap_bytes", Format::kBytes},
                             {"LEASE ms", "/lease_left_ms", Format::kNumber},
                             {"REASON", "/reason"}},
                 .empty = "no nodes: start tierpilotd on a machine"}});
}

// Drivers leave what they do not tell of a GPU at 0; cores have no GPU, and GPUs no cores.
void mark_untold(ordered_json& info) {
  for (auto& gpu : info["gpus"])
    for (const char* figure : {"memory_bytes", "compute_capability", "cores", "sm_clock_mhz",
                               "memory_clock_mhz", "bus_width_bits"})
      if (gpu[figure] == 0) {
        gpu[figure] = nullptr;
        gpu[std::string(figure) + "_unavailable"] = "its driver does not tell it";
      }
  for (auto& unit : info["shared_units"]) unit[unit["gpu"] == "" ? "gpu" : "cores"] = nullptr;
}

Result<int> show_node(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().nodeShowRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  ordered_json value{{"node", node_json(answer->getNode())},
                     {"notes", messages_json(answer->getNotes())}};
  mark_untold(value["node"]["info"]);
  return print(
      context.output, value,
      {{.rows = "/node", .columns = kNodeColumns},
       {.title = "Memory tiers, as measured", .rows = "/node/info/tiers", .columns = kTierColumns},
       {.title = "GPUs", .rows = "/node/info/gpus", .columns = kGpuColumns, .empty = "none"},
       {.title = "Units that tasks share",
        .rows = "/node/info/shared_units",
        .columns = {{"TYPE", "/type"},
                    {"CORES", "/cores", Format::kNumber},
                    {"MEMORY", "/memory_bytes", Format::kBytes},
                    {"GPU", "/gpu"}},
        .empty = "none"},
       {.title = "Features",
        .rows = "/node/info/features",
        .columns = {{"FEATURE", "/name"}, {"ON", "/on"}, {"REASON", "/reason"}},
        .empty = "none reported"},
       {.title = "Limits for tasks",
        .rows = "/node/info/limits",
        .columns = {{"LIMIT", "/name"}, {"ON", "/on"}, {"REASON", "/reason"}},
        .empty = "none reported"},
       {.title = "Metrics",
        .rows = "/node/status/metrics",
        .columns = {{"METRIC", "/name"}, {"VALUE", "/value", Format::kNumber}},
        .empty = "none reported"},
       {.title = "What became of it, the newest first",
        .rows = "/notes",
        .columns = {{"WHEN", "/at_ms", Format::kTime}, {"WHAT", "/what"}, {"WHY", "/why"}},
        .empty = "nothing"}});
}

}  // namespace

void add_node(CLI::App& app, Context& context) {
  auto* node = app.add_subcommand("node", "machines of the cluster");
  node->require_subcommand(1);
  on_chosen(*node->add_subcommand("list", "all nodes"), context,
            [&context](ClusterConnection& connection) { return list_nodes(context, connection); });
  add_by_name(*node, context, "show", "one node, its tiers and features", show_node);
  add_node_orders(*node, context);
}

}  // namespace tierpilot::tierctl
