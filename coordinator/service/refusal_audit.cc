#include "coordinator/service/refusal_audit.h"

#include <fmt/format.h>

#include <utility>

#include "base/audit.h"
#include "base/text/utf8.h"

namespace tierpilot {
namespace {

constexpr int64_t kRefusalIntervalNs = 1'000'000'000;
constexpr int kMostWritten = 10;    // lines of a user in that
constexpr size_t kMostBytes = 512;  // of one: names come from the caller
constexpr const char* kWhy = "its role does not allow it";

}  // namespace

void RefusalAudit::refused(const std::string& who, const std::string& what) {
  auto& of = by_whom_[who];
  auto told = beginning(what, kMostBytes);
  if (of.written < kMostWritten) {
    ++of.written;
    return audit(fmt::format("{}: {}: refused, {}", who, told, kWhy));
  }
  ++of.more;
  of.last = std::move(told);
}

void RefusalAudit::tick(int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kRefusalIntervalNs;
  flush();
}

void RefusalAudit::flush() {
  for (const auto& [who, of] : by_whom_)
    if (of.more > 0)
      audit(fmt::format("{}: {} more refused, {}; the last: {}", who, of.more, kWhy, of.last));
  by_whom_.clear();
}

}  // namespace tierpilot
