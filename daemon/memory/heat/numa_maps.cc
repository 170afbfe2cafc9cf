#include "daemon/memory/heat/numa_maps.h"

#include <fmt/format.h>

#include <bit>

#include "daemon/memory/heat/whole_number.h"

namespace tierpilot {
namespace {

// "N0=12", "kernelpagesize_kB=4", "file=/lib/x", "heap"; others are skipped.
bool parse_word(std::string_view word, MappingNodes& mapping) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) {
    if (word == "heap" || word == "stack") mapping.name = word;
    return true;
  }
  const auto key = word.substr(0, equals), value = word.substr(equals + 1);
  uint64_t number = 0;
  if (key == "file") {
    mapping.name = value;
  } else if (key == "kernelpagesize_kB") {
    if (!parse_whole(value, number) || number > 1 << 20 || !std::has_single_bit(number))
      return false;
    mapping.page_bytes = number << 10;
  } else if (key.size() > 1 && key[0] == 'N') {
    uint64_t node = 0;
    if (!parse_whole(key.substr(1), node) || node > 65'535) return false;
    if (!parse_whole(value, number) || number > UINT64_MAX >> 32) return false;
    mapping.pages_on_node[static_cast<int>(node)] += number;
  }
  return true;
}

bool parse_line(std::string_view line, MappingNodes& mapping) {
  for (int column = 0; !line.empty(); ++column) {
    const auto word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (column == 0 && !parse_whole(word, mapping.start, 16)) return false;
    if (column == 1) mapping.policy = word;
    if (column > 1 && !parse_word(word, mapping)) return false;
  }
  return !mapping.policy.empty();
}

}  // namespace

uint64_t MappingNodes::bytes() const {
  uint64_t pages = 0;
  for (const auto& [node, count] : pages_on_node) pages += count;
  return pages * page_bytes;
}

Result<std::vector<MappingNodes>> parse_numa_maps(std::string_view text) {
  std::vector<MappingNodes> mappings;
  for (size_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    MappingNodes mapping;
    if (!parse_line(line, mapping))
      return fail(ErrorCode::kInvalid, fmt::format("numa_maps line {}: cannot be understood: '{}'",
                                                   number, line.substr(0, 80)));
    if (!mapping.pages_on_node.empty()) mappings.push_back(std::move(mapping));
  }
  return mappings;
}

Result<std::vector<MappingNodes>> read_numa_maps(const Sysroot& sysroot, pid_t pid) {
  // 10,000 mappings make a MiB.
  return sysroot.read(fmt::format("/proc/{}/numa_maps", pid), SIZE_MAX).and_then(parse_numa_maps);
}

}  // namespace tierpilot
