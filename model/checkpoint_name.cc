#include "model/checkpoint_name.h"

#include <fmt/format.h>

#include <charconv>

namespace tierpilot {

std::string to_string(const CheckpointName& name) {
  return fmt::format("{}{}.{}.{}", kCheckpointPrefix, name.task, name.attempt, name.iteration);
}

std::optional<CheckpointName> parse_checkpoint_name(std::string_view dataset) {
  if (!dataset.starts_with(kCheckpointPrefix)) return std::nullopt;
  CheckpointName name;
  const char* at = dataset.data() + kCheckpointPrefix.size();
  const char* const end = dataset.data() + dataset.size();
  const auto number = [&](auto& into) {
    const auto [after, error] = std::from_chars(at, end, into);
    const bool good = error == std::errc();
    at = after;
    return good;
  };
  const auto dot = [&] { return at != end && *at++ == '.'; };
  const bool parsed = number(name.task) && dot() && number(name.attempt) && dot() &&
                      number(name.iteration) && at == end;
  // One name for each: no leading zeros.
  if (!parsed || to_string(name) != dataset) return std::nullopt;
  return name;
}

}  // namespace tierpilot
