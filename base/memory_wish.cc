#include "base/memory_wish.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tierpilot {
namespace {

constexpr uint32_t kMaxWeight = 255;

std::optional<uint32_t> take_weight(std::string_view& text) {
  uint32_t weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error != std::errc() || weight < 1 || weight > kMaxWeight) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return weight;
}

std::optional<MemoryWish> weighted(MemoryWish::Kind kind, std::string_view weights) {
  const auto fast = take_weight(weights);
  if (!fast || !weights.starts_with(',')) return {};
  weights.remove_prefix(1);
  const auto slow = take_weight(weights);
  if (!slow || !weights.empty()) return {};
  return MemoryWish{kind, *fast, *slow};
}

std::optional<MemoryWish> parse(std::string_view text) {
  constexpr std::string_view kInterleave = "interleave:", kHeap = "heap:";
  if (text.empty()) return MemoryWish{};
  if (text == "fast") return MemoryWish{.kind = MemoryWish::Kind::kFast};
  if (text == "slow") return MemoryWish{.kind = MemoryWish::Kind::kSlow};
  if (text.starts_with(kInterleave))
    return weighted(MemoryWish::Kind::kInterleave, text.substr(kInterleave.size()));
  if (text.starts_with(kHeap)) return weighted(MemoryWish::Kind::kHeap, text.substr(kHeap.size()));
  return {};
}

}  // namespace

Result<MemoryWish> parse_memory_wish(std::string_view text) {
  if (const auto wish = parse(text)) return *wish;
  return fail(ErrorCode::kInvalid,
              fmt::format("memory tier '{}': must be fast, slow, interleave:W1,W2 or heap:W1,W2, "
                          "with weights of fast and slow memory from 1 to {}",
                          text.substr(0, 64), kMaxWeight));
}

}  // namespace tierpilot
