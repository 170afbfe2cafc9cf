#include "tools/tiertool/top_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/output/output.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

// A rate of the table, and the counters of /proc/vmstat that make it: their names differ from
// kernel to kernel, and those that one lacks count nothing.
struct Rate {
  const char* name;
  const char* header;
  std::vector<std::string_view> counters;
};
const std::vector<Rate> kRates{
    {"faults", "FAULTS", {"pgfault"}},
    {"major_faults", "MAJOR", {"pgmajfault"}},
    {"numa_hint_faults", "NUMA HINT", {"numa_hint_faults"}},
    {"migrated_pages", "MIGRATED", {"pgmigrate_success"}},
    {"migration_failures", "FAILED", {"pgmigrate_fail"}},
    {"promoted_pages", "PROMOTED", {"pgpromote_success"}},
    {"demoted_pages", "DEMOTED", {"pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged"}},
    {"direct_reclaims",
     "DIRECT RECLAIM",
     {"allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable",
      "allocstall_device"}},
    {"swapped_in_pages", "SWAP IN", {"pswpin"}},
    {"swapped_out_pages", "SWAP OUT", {"pswpout"}},
};

constexpr ptrdiff_t kPageRates = 7;  // the first ones

Column rate_column(const Rate& rate) {
  return {rate.header, std::string("/") + rate.name, Format::kNumber};
}

// Counters only rise; one that fell began anew.
uint64_t risen(uint64_t before, uint64_t now) {
  return now >= before ? now - before : 0;
}

std::optional<double> rate_of(const Rate& rate, const TopSubject& subject, double seconds) {
  std::optional<double> sum;
  for (const auto counter : rate.counters) {
    const auto now = subject.now.vmstat.find(std::string(counter));
    if (now == subject.now.vmstat.end()) continue;
    const auto before = subject.before.vmstat.find(now->first);
    if (before == subject.before.vmstat.end()) continue;
    sum = sum.value_or(0) + static_cast<double>(risen(before->second, now->second)) / seconds;
  }
  return sum;
}

const PagingTier* tier_with(const std::vector<PagingTier>& tiers, int node) {
  const auto tier = std::ranges::find_if(
      tiers, [&](const auto& t) { return std::ranges::count(t.nodes, node) > 0; });
  return tier == tiers.end() ? nullptr : &*tier;
}

ordered_json node_rows(const TopSubject& subject) {
  ordered_json rows = ordered_json::array();
  for (const auto& node : subject.now.nodes) {
    const auto* tier = tier_with(subject.tiers, node.node);
    const auto used = node.total_bytes - std::min(node.free_bytes, node.total_bytes);
    ordered_json row{
        {"node", node.node},
        {"tier", tier ? tier->name : "none"},
        {"total_bytes", node.total_bytes},
        {"used_bytes", used},
        {"used_share",
         node.total_bytes ? static_cast<double>(used) / static_cast<double>(node.total_bytes) : 0}};
    set_or_unavailable(row, "latency_ns", tier ? tier->loaded_latency_ns : std::nullopt,
                       tier && !tier->loaded_latency_unavailable.empty()
                           ? tier->loaded_latency_unavailable
                           : "unavailable: not measured");
    rows.push_back(std::move(row));
  }
  const auto speed_rank = [&](const ordered_json& row) {
    const auto* tier = tier_with(subject.tiers, row["node"].get<int>());
    return tier ? tier - subject.tiers.data() : PTRDIFF_MAX;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto& a, const auto& b) { return speed_rank(a) < speed_rank(b); });
  return rows;
}

// Bytes outside the fastest tier; nothing when the process's nodes are not known.
std::optional<uint64_t> slow_bytes(const ProcessReading& process,
                                   const std::vector<PagingTier>& tiers) {
  if (!process.bytes_on_node) return {};
  uint64_t slow = 0;
  for (const auto& [node, bytes] : *process.bytes_on_node)
    if (tier_with(tiers, node) != tiers.data()) slow += bytes;
  return slow;
}

ordered_json process_row(const ProcessReading& now, const ProcessReading& before,
                         const TopSubject& subject, double seconds) {
  const auto per_second = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(risen(from, to)) / seconds;
  };
  ordered_json row{{"pid", now.pid},
                   {"resident_bytes", now.resident_bytes},
                   {"faults_per_s", per_second(before.faults, now.faults)},
                   {"major_faults_per_s", per_second(before.major_faults, now.major_faults)},
                   {"cpu_share", per_second(before.cpu_ticks, now.cpu_ticks) /
                                     static_cast<double>(::sysconf(_SC_CLK_TCK))}};
  const auto slow = slow_bytes(now, subject.tiers);
  set_or_unavailable(row, "slow_bytes", slow ? std::optional<double>(*slow) : std::nullopt,
                     "unavailable: another user's, or not looked at yet");
  if (slow) row["slow_bytes"] = *slow;
  row["bytes_on_node"] = ordered_json::object();
  if (now.bytes_on_node)
    for (const auto& [node, bytes] : *now.bytes_on_node)
      row["bytes_on_node"][std::to_string(node)] = bytes;
  row["command"] = now.name;
  return row;
}

double sort_key(const ordered_json& row, TopOrder order) {
  const char* key = order == TopOrder::kSlow     ? "slow_bytes"
                    : order == TopOrder::kFaults ? "faults_per_s"
                    : order == TopOrder::kCpu    ? "cpu_share"
                                                 : "resident_bytes";
  return row[key].is_number() ? row[key].get<double>() : -1;
}

ordered_json process_rows(const TopSubject& subject, TopOrder order, size_t limit, double seconds) {
  std::map<pid_t, const ProcessReading*> before;
  for (const auto& process : subject.before.processes) before[process.pid] = &process;
  std::vector<ordered_json> rows;
  for (const auto& process : subject.now.processes) {
    const auto it = before.find(process.pid);
    const bool known = it != before.end() && it->second->start_ticks == process.start_ticks;
    // Of one that began meanwhile everything is new.
    rows.push_back(process_row(process, known ? *it->second : ProcessReading{}, subject, seconds));
  }
  std::ranges::stable_sort(rows, std::greater{},
                           [&](const auto& row) { return sort_key(row, order); });
  if (rows.size() > limit) rows.resize(limit);
  return rows;
}

Table process_table(const ordered_json& value) {
  Table table{.rows = "/processes",
              .columns = {{"PID", "/pid"}, {"RESIDENT", "/resident_bytes", Format::kBytes}},
              .empty = "no processes with memory"};
  if (value["nodes"].size() > 1)
    for (const auto& node : value["nodes"]) {
      const auto id = std::to_string(node["node"].get<int>());
      table.columns.push_back({"NODE " + id, "/bytes_on_node/" + id, Format::kBytes});
    }
  table.columns.push_back({"FAULTS/s", "/faults_per_s", Format::kNumber});
  table.columns.push_back({"MAJOR/s", "/major_faults_per_s", Format::kNumber});
  table.columns.push_back({"CPU", "/cpu_share", Format::kPercent});
  table.columns.push_back({"COMMAND", "/command"});
  return table;
}

}  // namespace

std::string_view order_name(TopOrder order) {
  switch (order) {
    case TopOrder::kMemory:
      return "memory";
    case TopOrder::kSlow:
      return "slow";
    case TopOrder::kFaults:
      return "faults";
    case TopOrder::kCpu:
      return "cpu";
  }
  return "memory";
}

Result<TopOrder> order_from_name(std::string_view name) {
  for (const auto order : kTopOrders)
    if (order_name(order) == name) return order;
  return fail(ErrorCode::kInvalid,
              fmt::format("'{}' is no order: it is memory, slow, faults or cpu", name));
}

ordered_json top_value(const TopSubject& subject, TopOrder order, size_t limit) {
  const double seconds =
      std::max(static_cast<double>(subject.now.boot_ns - subject.before.boot_ns) / 1e9, 1e-3);
  ordered_json value{{"interval_s", seconds},
                     {"nodes", node_rows(subject)},
                     {"per_second", ordered_json::object()},
                     {"pressure", ordered_json::object()}};
  for (const auto& rate : kRates)
    set_or_unavailable(value["per_second"], rate.name, rate_of(rate, subject, seconds),
                       "unavailable: this kernel does not count it");
  for (const auto& [key, share] : {std::pair{"some_share", subject.now.pressure_some_share},
                                   std::pair{"full_share", subject.now.pressure_full_share}})
    set_or_unavailable(value["pressure"], key, share,
                       "unavailable: this kernel has no pressure stall information");
  value["order"] = order_name(order);
  value["processes"] = process_rows(subject, order, limit, seconds);
  return value;
}

std::string top_text(const ordered_json& value) {
  // Two rows of tables: one would be wider than a terminal.
  Table pages{.title = "pages a second", .rows = "/rows"};
  for (const auto& rate : kRates) pages.columns.push_back(rate_column(rate));
  Table stalls{.title = "events a second, and the share of 10 s in which some or all tasks stood",
               .rows = "/rows"};
  stalls.columns.assign(pages.columns.begin() + kPageRates, pages.columns.end());
  pages.columns.resize(kPageRates);
  stalls.columns.push_back({"SOME STOOD", "/some_share", Format::kPercent});
  stalls.columns.push_back({"ALL STOOD", "/full_share", Format::kPercent});
  ordered_json row = value["per_second"];
  row.update(value["pressure"]);
  const Table nodes{.rows = "/nodes",
                    .columns = {{"NODE", "/node"},
                                {"TIER", "/tier"},
                                {"SIZE", "/total_bytes", Format::kBytes},
                                {"USED", "/used_bytes", Format::kBytes},
                                {"SHARE", "/used_share", Format::kPercent},
                                {"LATENCY ns", "/latency_ns", Format::kNumber}},
                    .empty = "no NUMA nodes"};
  const ordered_json rows{{"rows", ordered_json::array({row})}};
  return format_table(value, nodes) + "\n" + format_table(rows, pages) + "\n" +
         format_table(rows, stalls) + "\n" + format_table(value, process_table(value));
}

}  // namespace tierpilot::tiertool
