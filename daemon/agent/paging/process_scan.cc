#include "daemon/agent/paging/process_scan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace tierpilot::agent {
namespace {

// Counted from the state, which follows the name: proc(5) counts it as the third.
constexpr size_t kParent = 1, kStarted = 19, kResidentPages = 21;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (size_t at = 0; (at = text.find_first_not_of(" \n", at)) != text.npos;) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

}  // namespace

Result<ScannedProcess> parse_process_stat(std::string_view line) {
  const auto invalid = [] {
    return fail(ErrorCode::kInvalid, "/proc/<pid>/stat: not as the kernel writes it");
  };
  // A name may hold parentheses and blanks.
  const size_t open = line.find(" ("), close = line.rfind(')');
  if (open == line.npos || close == line.npos || close < open + 2) return invalid();
  const auto fields = words(line.substr(close + 1));
  if (fields.size() <= kResidentPages) return invalid();
  const auto pid = number<pid_t>(line.substr(0, open));
  const auto parent = number<pid_t>(fields[kParent]);
  const auto started = number<uint64_t>(fields[kStarted]);
  const auto pages = number<uint64_t>(fields[kResidentPages]);
  if (!pid || !parent || !started || !pages) return invalid();
  return ScannedProcess{.pid = *pid,
                        .parent = *parent,
                        .name = std::string(line.substr(open + 2, close - open - 2)),
                        .started_ticks = *started,
                        .resident_bytes = *pages * static_cast<uint64_t>(::getpagesize())};
}

std::vector<ScannedProcess> scan_processes(const Sysroot& sysroot, size_t limit) {
  std::vector<ScannedProcess> processes;
  for (const auto& name : sysroot.list("/proc")) {
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); }))
      continue;
    if (processes.size() == limit) break;
    const auto line = sysroot.read(fmt::format("/proc/{}/stat", name));
    if (!line) continue;
    if (auto process = parse_process_stat(*line)) processes.push_back(std::move(*process));
  }
  return processes;
}

}  // namespace tierpilot::agent
