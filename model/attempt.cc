#include "model/attempt.h"

#include <fmt/format.h>

#include <charconv>

namespace tierpilot {

std::string to_string(AttemptId id) {
  return fmt::format("{}-{}", id.task, id.attempt);
}

std::optional<AttemptId> parse_attempt(std::string_view text) {
  AttemptId id;
  const char* end = text.data() + text.size();
  auto [dash, error] = std::from_chars(text.data(), end, id.task);
  if (error != std::errc() || dash == end || *dash != '-') return std::nullopt;
  auto [rest, error2] = std::from_chars(dash + 1, end, id.attempt);
  if (error2 != std::errc() || rest != end || to_string(id) != text) return std::nullopt;
  return id;
}

}  // namespace tierpilot
