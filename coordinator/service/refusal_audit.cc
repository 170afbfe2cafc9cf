#include "coordinator/service/refusal_audit.h"

#include <fmt/format.h>

#include "base/audit.h"
#include "base/text/utf8.h"

namespace tierpilot {
namespace {

constexpr int64_t kRefusalIntervalNs = 1'000'000'000;
constexpr size_t kMostWritten = 512;  // bytes: names come from the caller
constexpr const char* kWhy = "its role does not allow it";

}  // namespace

void RefusalAudit::refused(const std::string& who, const std::string& what) {
  const auto [entry, first] = by_whom_.try_emplace(who);
  if (first)
    return audit(fmt::format("{}: {}: refused, {}", who, beginning(what, kMostWritten), kWhy));
  ++entry->second.refusals;
  entry->second.last = beginning(what, kMostWritten);
}

void RefusalAudit::tick(int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kRefusalIntervalNs;
  flush();
}

void RefusalAudit::flush() {
  for (const auto& [who, of] : by_whom_)
    if (of.refusals == 1)
      audit(fmt::format("{}: {}: refused, {}", who, of.last, kWhy));
    else if (of.refusals > 1)
      audit(fmt::format("{}: refused {} times more, {}; the last: {}", who, of.refusals, kWhy,
                        of.last));
  by_whom_.clear();
}

}  // namespace tierpilot
