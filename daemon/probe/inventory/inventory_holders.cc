#include "daemon/probe/inventory/inventory_holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace tierpilot {
namespace {

template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number value{};
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (err != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

// The value of the line "prog_id:\t536".
std::optional<uint32_t> id_in(std::string_view fdinfo, std::string_view key) {
  const auto at = fdinfo.find(fmt::format("\n{}:\t", key));
  if (at == std::string_view::npos) return std::nullopt;
  return to_number<uint32_t>(fdinfo.substr(at + key.size() + 3));
}

}  // namespace

std::map<uint32_t, std::vector<int>> find_holders(const Sysroot& sysroot, std::string_view key) {
  std::map<uint32_t, std::vector<int>> holders;
  for (const auto& process : sysroot.list("/proc")) {
    const auto pid = to_number<int>(process);
    if (!pid) continue;
    const std::string folder = "/proc/" + process + "/fdinfo";
    for (const auto& fd : sysroot.list(folder)) {
      const auto text = sysroot.read(folder + "/" + fd);
      const auto id = text ? id_in(*text, key) : std::nullopt;
      if (!id) continue;
      auto& pids = holders[*id];
      if (std::ranges::find(pids, *pid) == pids.end()) pids.push_back(*pid);
    }
  }
  return holders;
}

}  // namespace tierpilot
