#include "daemon/memory/heat/address_space.h"

#include <fmt/format.h>

#include <bit>

#include "daemon/memory/heat/whole_number.h"

namespace tierpilot {
namespace {

std::string_view take_word(std::string_view& line) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  const auto end = std::min(line.find(' ', begin), line.size());
  const auto word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// "7f00-7fff rw-p 00000000 00:00 0   [heap]"
bool parse_header(std::string_view line, Mapping& mapping) {
  const auto range = take_word(line);
  const auto dash = range.find('-');
  if (dash == std::string_view::npos || !parse_whole(range.substr(0, dash), mapping.start, 16) ||
      !parse_whole(range.substr(dash + 1), mapping.end, 16) || mapping.start >= mapping.end)
    return false;
  mapping.permissions = take_word(line);
  for (int skipped = 0; skipped < 3; ++skipped) take_word(line);  // offset, device, inode
  const auto name = line.find_first_not_of(' ');
  if (name != std::string_view::npos) mapping.name = line.substr(name);
  return mapping.permissions.size() == 4;
}

// "Rss:   4 kB"; lines that are not of interest are skipped.
bool parse_field(std::string_view line, Mapping& mapping) {
  const auto key = take_word(line);
  const bool page = key == "KernelPageSize:";
  // Pages of hugetlbfs do not count as resident set.
  const bool resident = key == "Rss:" || key == "Private_Hugetlb:" || key == "Shared_Hugetlb:";
  const bool huge = key == "AnonHugePages:" || key == "ShmemPmdMapped:" || key == "FilePmdMapped:";
  if (!resident && !page && !huge) return true;
  uint64_t kib = 0;
  if (!parse_whole(take_word(line), kib) || kib > UINT64_MAX >> 12) return false;
  if (resident) mapping.resident_bytes += kib << 10;
  if (huge) mapping.huge_bytes += kib << 10;
  if (!page) return true;
  mapping.page_bytes = static_cast<uint32_t>(kib << 10);
  return std::has_single_bit(mapping.page_bytes) && kib <= 1 << 20;
}

// The text is read in pieces. A mapping that grew, or joined the one before, between two of them
// is written once more, from its old start: as it is then.
void keep_latest(std::vector<Mapping>& mappings) {
  std::vector<Mapping> kept;
  for (auto& mapping : mappings) {
    while (!kept.empty() && kept.back().start >= mapping.start && kept.back().end <= mapping.end)
      kept.pop_back();
    if (!kept.empty()) mapping.start = std::max(mapping.start, kept.back().end);
    if (mapping.start < mapping.end) kept.push_back(std::move(mapping));
  }
  mappings = std::move(kept);
}

bool is_file(const Mapping& mapping) {
  // mmap's MAP_HUGETLB, which the kernel gives a file.
  const bool anonymous = mapping.name == "/anon_hugepage (deleted)";
  return mapping.name.starts_with('/') && !anonymous && !mapping.shared();
}

}  // namespace

Result<std::vector<Mapping>> parse_smaps(std::string_view text) {
  std::vector<Mapping> mappings;
  for (size_t number = 1; !text.empty(); ++number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    // Only a header's first word has no colon at its end.
    const auto first = line.substr(0, line.find(' '));
    const bool header = !first.ends_with(':');
    bool good = true;
    if (header)
      good = parse_header(line, mappings.emplace_back());
    else
      good = !mappings.empty() && parse_field(line, mappings.back());
    if (!good)
      return fail(ErrorCode::kInvalid, fmt::format("smaps line {}: cannot be understood: '{}'",
                                                   number, line.substr(0, 80)));
  }
  keep_latest(mappings);
  return mappings;
}

Result<std::vector<Mapping>> read_mappings(const Sysroot& sysroot, pid_t pid) {
  // 25 lines a mapping.
  return sysroot.read(fmt::format("/proc/{}/smaps", pid), SIZE_MAX).and_then(parse_smaps);
}

std::vector<TrackedRange> trackable_ranges(const std::vector<Mapping>& mappings,
                                           const RangeFilter& filter) {
  std::vector<TrackedRange> ranges;
  for (const auto& mapping : mappings) {
    const bool kernel_page = mapping.name.starts_with("[v");
    const bool accessible = mapping.permissions[0] == 'r' || mapping.permissions[1] == 'w';
    if (kernel_page || !accessible || (is_file(mapping) && !filter.file_backed)) continue;
    if (mapping.resident_bytes < filter.min_bytes) continue;
    // With any huge page among them: a part of one cannot be placed by itself.
    const bool huge = mapping.huge_bytes > 0;
    const uint32_t page =
        huge ? std::max<uint32_t>(kHugePageBytes, mapping.page_bytes) : mapping.page_bytes;
    // Edges inside a huge page belong to base pages: they make ranges of their own.
    const uint64_t first = (mapping.start + page - 1) & ~uint64_t{page - 1};
    const uint64_t last = mapping.end & ~uint64_t{page - 1};
    // At the end of all addresses the next huge page is the first one.
    if (first >= last || first < mapping.start) {
      ranges.push_back({mapping.start, mapping.end, mapping.page_bytes});
      continue;
    }
    if (mapping.start < first) ranges.push_back({mapping.start, first, mapping.page_bytes});
    ranges.push_back({first, last, page});
    if (last < mapping.end) ranges.push_back({last, mapping.end, mapping.page_bytes});
  }
  return ranges;
}

}  // namespace tierpilot
