#include "daemon/memory/damon/access.h"

#include <fmt/format.h>

namespace tierpilot {
namespace {

constexpr int64_t kUsPerMs = 1'000;

Status in_range(std::string_view what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("DAMON: {} {}: it must be {} to {}", what, value, least, most));
}

}  // namespace

Status check(const DamonAttrs& attrs) {
  return in_range("sample_us", attrs.sample_us, 1 * kUsPerMs, 1'000 * kUsPerMs)
      .and_then([&] {
        return in_range("aggregation_us", attrs.aggregation_us, attrs.sample_us, 2'500 * kUsPerMs);
      })
      .and_then([&] {
        return in_range("update_us", attrs.update_us, attrs.sample_us, 60'000 * kUsPerMs);
      })
      .and_then([&] { return in_range("min_regions", attrs.min_regions, 3, 1'000); })
      .and_then(
          [&] { return in_range("max_regions", attrs.max_regions, attrs.min_regions, 1'000); });
}

Status check_plain(const DamonAttrs& attrs) {
  if (attrs.sample_us >= 5 * kUsPerMs && attrs.aggregation_us <= kPlainAggregationUs &&
      attrs.max_regions <= 300)
    return {};
  return fail(ErrorCode::kDenied,
              fmt::format("DAMON: looks each {} us, aggregations of {} us and {} regions: without "
                          "CAP_SYS_PTRACE it is at least 5000, at most 250000 and at most 300",
                          attrs.sample_us, attrs.aggregation_us, attrs.max_regions));
}

}  // namespace tierpilot
