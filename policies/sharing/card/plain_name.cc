#include "policies/sharing/card/plain_name.h"

#include <fmt/format.h>

namespace tierpilot::sharing {

std::string plain_name(std::string_view name) {
  constexpr std::string_view kCut = "...";
  const bool fits = name.size() <= kMostNameBytes;
  std::string plain(name.substr(0, fits ? kMostNameBytes : kMostNameBytes - kCut.size()));
  for (auto& c : plain)
    if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '?';
  if (!fits) plain += kCut;
  return plain;
}

tl::unexpected<Error> wrong_model(const std::string& model, const std::string& what) {
  return fail(ErrorCode::kInvalid, fmt::format("model '{}': {}", model, what));
}

}  // namespace tierpilot::sharing
