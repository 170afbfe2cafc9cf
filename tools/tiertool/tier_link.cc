#include "tools/tiertool/tier_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/sysroot.h"
#include "base/text/json_member.h"
#include "base/text/json_text.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::json;

// 0: there is none.
double figure(const json& tier, const char* pointer) {
  const json::json_pointer at(pointer);
  if (!tier.contains(at) || !tier[at].is_number()) return 0;
  const double value = tier[at];
  return std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace

Result<swap::Link> link_of_tier(const std::filesystem::path& path, const std::string& name) {
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}': {}; `tiertool tier show -j --dir DIR` writes such a file",
                            path.string(), why));
  };
  const auto text = Sysroot("/").read(std::filesystem::absolute(path));
  if (!text) return tl::unexpected(text.error());
  const auto value = parse_json_or_discard<json>(*text);
  if (!value.is_object() || !value.contains("tiers") || !value["tiers"].is_array())
    return wrong("it is no JSON object with a list \"tiers\"");
  const auto& tiers = value["tiers"];
  if (name.empty() && tiers.size() < 2) return wrong("it has no second tier to copy to");
  const auto found = name.empty() ? tiers.begin() + 1
                                  : std::find_if(tiers.begin(), tiers.end(), [&](const json& tier) {
                                      return tier.is_object() && member_is(tier, "tier", name);
                                    });
  if (found == tiers.end()) return wrong(fmt::format("it has no tier '{}'", name));
  const auto reads = figure(*found, "/read_gb_per_s"), writes = figure(*found, "/write_gb_per_s");
  const auto latency_ns = figure(*found, "/latency_ns/p50");
  if (reads == 0 || writes == 0 || latency_ns == 0)
    return wrong("read_gb_per_s, write_gb_per_s or latency_ns of that tier was not measured");
  return swap::Link{.gb_per_s = std::clamp(std::min(reads, writes), kLeastGbPerS, 1e6),
                    .latency_ns = static_cast<int64_t>(std::min(latency_ns, 1e12))};
}

}  // namespace tierpilot::tiertool
