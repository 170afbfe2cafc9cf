#include "tools/tiertool/top_reading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <sstream>

#include "daemon/memory/heat/numa_maps.h"
#include "daemon/topology/meminfo.h"

namespace tierpilot::tiertool {
namespace {

uint64_t page_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::map<std::string, uint64_t> parse_counters(const std::string& text) {
  std::map<std::string, uint64_t> counters;
  std::istringstream lines(text);
  std::string name;
  uint64_t value = 0;
  while (lines >> name >> value) counters[name] = value;
  return counters;
}

// "some avg10=1.25 avg60=..." as 0.0125.
std::optional<double> pressure(const std::string& text, const std::string& kind) {
  const auto at = text.find(kind + " avg10=");
  if (at == std::string::npos) return {};
  double percent = 0;
  std::istringstream(text.substr(at + kind.size() + 7)) >> percent;
  return percent / 100;
}

std::vector<NodeReading> read_nodes(const Sysroot& sysroot) {
  std::vector<NodeReading> nodes;
  const auto ids = sysroot.read_id_list("/sys/devices/system/node/has_memory");
  for (const int id : ids.value_or(std::vector<int>{})) {
    const auto text = sysroot.read(fmt::format("/sys/devices/system/node/node{}/meminfo", id));
    if (!text) continue;  // it was taken away just now
    nodes.push_back({.node = id,
                     .total_bytes = meminfo_bytes(*text, "MemTotal").value_or(0),
                     .free_bytes = meminfo_bytes(*text, "MemFree").value_or(0)});
  }
  return nodes;
}

std::vector<ProcessReading> read_processes(const Sysroot& sysroot) {
  std::vector<ProcessReading> processes;
  for (const auto& name : sysroot.list("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto line = sysroot.read("/proc/" + name + "/stat");
    if (!line) continue;
    auto process = parse_process_stat(*line, page_bytes());
    if (process && process->resident_bytes > 0) processes.push_back(std::move(*process));
  }
  std::ranges::stable_sort(processes, std::greater{}, &ProcessReading::resident_bytes);
  return processes;
}

}  // namespace

Result<ProcessReading> parse_process_stat(std::string_view line, uint64_t page_bytes) {
  // A name may have spaces and parentheses of its own.
  const auto open = line.find(" ("), close = line.rfind(") ");
  ProcessReading process;
  const auto pid = std::from_chars(line.data(), line.data() + line.size(), process.pid);
  if (pid.ec != std::errc{} || open == line.npos || close == line.npos || close < open + 2)
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is no process's stat", line));
  process.name = line.substr(open + 2, close - open - 2);
  std::istringstream rest{std::string(line.substr(close + 2))};
  constexpr int kState = 3, kMinorFaults = 10, kMajorFaults = 12, kUser = 14, kSystem = 15,
                kStart = 22, kResident = 24;
  std::string word;
  for (int field = kState; field <= kResident; ++field) {
    if (!(rest >> word))
      return fail(ErrorCode::kInvalid, fmt::format("'{}' ends at field {}", line, field));
    uint64_t value = 0;  // some fields are negative, none that is used
    std::from_chars(word.data(), word.data() + word.size(), value);
    if (field == kMinorFaults) process.faults += value;
    if (field == kMajorFaults) process.faults += value, process.major_faults = value;
    if (field == kUser || field == kSystem) process.cpu_ticks += value;
    if (field == kStart) process.start_ticks = value;
    if (field == kResident) process.resident_bytes = value * page_bytes;
  }
  return process;
}

Result<MachineReading> read_machine(const Sysroot& sysroot, int64_t boot_ns) {
  const auto vmstat = sysroot.read("/proc/vmstat");
  if (!vmstat) return fail(ErrorCode::kUnavailable, vmstat.error().message);
  const auto pressures = sysroot.read("/proc/pressure/memory").value_or("");
  return MachineReading{.boot_ns = boot_ns,
                        .nodes = read_nodes(sysroot),
                        .vmstat = parse_counters(*vmstat),
                        .pressure_some_share = pressure(pressures, "some"),
                        .pressure_full_share = pressure(pressures, "full"),
                        .processes = read_processes(sysroot)};
}

NodeShares::Known NodeShares::look(const ProcessReading& process, int64_t boot_ns) const {
  Known known{.start_ticks = process.start_ticks, .read_boot_ns = boot_ns, .bytes_on_node = {}};
  const auto mappings = read_numa_maps(sysroot_, process.pid);
  if (!mappings) return known;  // another user's, or gone
  known.bytes_on_node.emplace();
  for (const auto& mapping : *mappings)
    for (const auto& [node, pages] : mapping.pages_on_node)
      (*known.bytes_on_node)[node] += pages * mapping.page_bytes;
  return known;
}

void NodeShares::fill(MachineReading& machine, size_t limit, int64_t budget_ns) {
  const std::span processes(machine.processes.data(), std::min(limit, machine.processes.size()));
  std::map<pid_t, Known> known;
  std::vector<const ProcessReading*> order;
  for (const auto& process : processes) {
    order.push_back(&process);
    const auto before = known_.find(process.pid);
    if (before != known_.end() && before->second.start_ticks == process.start_ticks)
      known.insert(*before);
  }
  std::ranges::stable_sort(order, {}, [&](const auto* process) {
    const auto before = known.find(process->pid);
    return before == known.end() ? INT64_MIN : before->second.read_boot_ns;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(budget_ns);
  for (const auto* process : order) {
    if (std::chrono::steady_clock::now() >= end) break;
    known[process->pid] = look(*process, machine.boot_ns);
  }
  for (auto& process : processes)
    if (const auto it = known.find(process.pid); it != known.end())
      process.bytes_on_node = it->second.bytes_on_node;
  known_ = std::move(known);
}

}  // namespace tierpilot::tiertool
