#include "policies/quality/predictor.h"

#include <array>
#include <string>

#include "policies/quality/blended_predictor.h"
#include "policies/quality/rivals.h"

namespace tierpilot::quality {
namespace {

constexpr std::array<std::string_view, 5> kNames{"quality", "published", "last-value",
                                                 "last-change", "exponential-mean"};

}  // namespace

std::span<const std::string_view> predictor_names() {
  return kNames;
}

std::unique_ptr<Predictor> make_default_predictor() {
  return std::make_unique<BlendedPredictor>();
}

Result<std::unique_ptr<Predictor>> make_predictor(std::string_view name) {
  if (name == kNames[0]) return make_default_predictor();
  if (name == kNames[1]) return make_published_fit();
  if (name == kNames[2]) return make_last_value();
  if (name == kNames[3]) return make_last_change();
  if (name == kNames[4]) return make_exponential_mean();
  std::string known;
  for (const auto each : kNames) known.append(known.empty() ? "" : ", ").append(each);
  return fail(ErrorCode::kNotFound,
              "predictor '" + std::string(name) + "' is not known; there are " + known);
}

}  // namespace tierpilot::quality
