#include "base/swap_tier_words.h"

#include <fmt/format.h>

#include <charconv>

#include "base/bytes.h"

namespace tierpilot {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{1} << 20, kMostBytes = uint64_t{1} << 46;

tl::unexpected<Error> wrong(std::string_view entry, std::string_view why) {
  return fail(ErrorCode::kInvalid, fmt::format("tier '{}': {}", entry, why));
}

}  // namespace

std::string SwapTierWords::name() const {
  switch (kind) {
    case Kind::kNode:
      return fmt::format("node{}", node);
    case Kind::kDirectory:
      return "dir:" + directory;
    case Kind::kMemory:
      break;
  }
  return "memory";
}

Result<SwapTierWords> parse_swap_tier(std::string_view entry) {
  const auto equals = entry.rfind('=');
  if (equals == std::string_view::npos)
    return wrong(entry, "say how much of it may be used: NAME=SIZE, as in dir:/srv/slow=16GiB");
  const auto size = parse_bytes(entry.substr(equals + 1));
  if (!size) return wrong(entry, size.error().message);
  if (*size < kLeastBytes || *size > kMostBytes)
    return wrong(entry, "a size from 1MiB to 64TiB is needed");
  const auto where = entry.substr(0, equals);
  SwapTierWords tier{.directory = {}, .bytes = *size};
  if (where == "memory") return tier;
  if (where.starts_with("dir:") && where.size() > 4) {
    tier.kind = SwapTierWords::Kind::kDirectory;
    tier.directory = where.substr(4);
    return tier;
  }
  if (where.starts_with("node")) {
    tier.kind = SwapTierWords::Kind::kNode;
    const auto* end = where.data() + where.size();
    const auto [stop, error] = std::from_chars(where.data() + 4, end, tier.node);
    if (error == std::errc() && stop == end && tier.node >= 0) return tier;
  }
  return wrong(entry, "there are node0, node1, ..., memory and dir:PATH");
}

}  // namespace tierpilot
