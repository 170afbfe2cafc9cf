#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/sysroot.h"
#include "base/text/json_text.h"
#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {
namespace {

using nlohmann::json;

// Finds positive numbers, and says which are missing and why.
class Figures {
 public:
  Figures(const json& tier, std::string origin) : tier_(tier), origin_(std::move(origin)) {}

  double positive(const char* pointer) {
    const json::json_pointer at(pointer);
    if (tier_.contains(at) && tier_[at].is_number())
      if (const double value = tier_[at]; std::isfinite(value) && value > 0) return value;
    const json::json_pointer why(std::string(pointer) + "_unavailable");
    std::string reason = "missing or no number over 0";
    if (tier_.contains(why) && tier_[why].is_string())
      reason = "unavailable: " + tier_[why].get<std::string>();
    faults_ += fmt::format("{}{}: {}", faults_.empty() ? "" : "; ", pointer + 1, reason);
    return 1;
  }
  // Seconds of a figure in ns; 0 where it is no figure, as between memory nodes.
  double start_s(const char* pointer) const {
    const json::json_pointer at(pointer);
    if (!tier_.contains(at) || !tier_[at].is_number()) return 0;
    const double ns = tier_[at];
    return std::isfinite(ns) && ns > 0 ? ns * 1e-9 : 0;
  }
  Status finish() const {
    if (faults_.empty()) return {};
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}': its first tier does not say {}. It must be what `tiertool tier "
                            "show -j` writes, with two tiers or more (--dir DIR adds one)",
                            origin_, faults_));
  }

 private:
  const json& tier_;
  const std::string origin_;
  std::string faults_;
};

}  // namespace

Result<TierSpeeds> read_tier_speeds(const std::filesystem::path& path) {
  const auto text = Sysroot("/").read(std::filesystem::absolute(path));
  if (!text) return tl::unexpected(text.error());
  const auto value = parse_json_or_discard<json>(*text);
  const auto wrong = [&](const char* why) {
    return fail(
        ErrorCode::kInvalid,
        fmt::format("'{}': {}; `tiertool tier show -j` writes such a file", path.string(), why));
  };
  if (value.is_discarded()) return wrong("it is not JSON");
  if (!value.is_object() || !value.contains("tiers") || !value["tiers"].is_array())
    return wrong("it is no JSON object with a list \"tiers\"");
  if (value["tiers"].empty()) return wrong("its list \"tiers\" is empty");
  Figures fast(value["tiers"][0], path.string());
  TierSpeeds speeds;
  speeds.fast_latency_ns = fast.positive("/latency_ns/p50");
  speeds.fast_read_bytes_per_s = fast.positive("/read_gb_per_s") * 1e9;
  speeds.fast_copy_bytes_per_s = fast.positive("/copy_gb_per_s") * 1e9;
  speeds.promote_bytes_per_s = fast.positive("/promote_gb_per_s") * 1e9;
  speeds.evict_bytes_per_s = fast.positive("/evict_gb_per_s") * 1e9;
  speeds.promote_start_s = fast.start_s("/promote_start_ns");
  speeds.evict_start_s = fast.start_s("/evict_start_ns");
  if (auto status = fast.finish(); !status) return tl::unexpected(status.error());
  return speeds;
}

}  // namespace tierpilot::sim
