#include "daemon/topology/meminfo.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace tierpilot {

std::optional<uint64_t> meminfo_bytes(std::string_view text, std::string_view key) {
  const auto at = text.find(std::string(key) + ':');
  if (at == std::string_view::npos) return std::nullopt;
  auto rest = text.substr(at + key.size() + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  uint64_t kib = 0;
  const auto [end, err] = std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  const std::string_view unit(end, static_cast<size_t>(rest.data() + rest.size() - end));
  if (err != std::errc{} || !unit.starts_with(" kB") || kib > UINT64_MAX / 1024)
    return std::nullopt;
  return kib * 1024;
}

}  // namespace tierpilot
