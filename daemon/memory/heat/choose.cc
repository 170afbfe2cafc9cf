#include "daemon/memory/heat/choose.h"

#include <fmt/format.h>

#include "daemon/memory/heat/damon.h"
#include "daemon/memory/heat/fault_addresses.h"
#include "daemon/memory/heat/soft_dirty.h"

namespace tierpilot {

std::string_view tracker_name(TrackerKind kind) {
  switch (kind) {
    case TrackerKind::kDamon:
      return "damon";
    case TrackerKind::kNumaHint:
      return "numa-hint";
    case TrackerKind::kSoftDirty:
      return "soft-dirty";
    case TrackerKind::kFaultAddress:
      return "fault-address";
    case TrackerKind::kPmuAddress:
      return "pmu-address";
  }
  return "unknown";
}

Result<TrackerKind> tracker_from_name(std::string_view name) {
  for (const auto kind : {TrackerKind::kDamon, TrackerKind::kNumaHint, TrackerKind::kSoftDirty,
                          TrackerKind::kFaultAddress})
    if (tracker_name(kind) == name) return kind;
  return fail(ErrorCode::kInvalid,
              fmt::format("tracker '{}': there is none of that name: damon, numa-hint, soft-dirty "
                          "or fault-address",
                          name));
}

TrackerChoice::TrackerChoice(const Sysroot& sysroot, const Clock& clock) {
  sources_.push_back(std::make_unique<DamonSource>(sysroot));
  sources_.push_back(std::make_unique<FaultSource>(TrackerKind::kNumaHint, sysroot, clock));
  sources_.push_back(std::make_unique<SoftDirtySource>(sysroot, clock));
  sources_.push_back(std::make_unique<FaultSource>(TrackerKind::kFaultAddress, sysroot, clock));
}

TrackerChoice::TrackerChoice(std::vector<std::unique_ptr<TrackerSource>> sources)
    : sources_(std::move(sources)) {}

std::vector<TrackerOffer> TrackerChoice::offers() const {
  std::vector<TrackerOffer> offers;
  for (const auto& source : sources_) offers.push_back(source->offer());
  return offers;
}

Result<TrackerSource*> TrackerChoice::choose(std::optional<TrackerKind> wanted, pid_t pid) const {
  std::string reasons;
  for (const auto& source : sources_) {
    const auto offer = source->offer();
    if (wanted && offer.traits.kind != *wanted) continue;
    Status opened = offer.available;
    if (opened && pid != 0) opened = source->may_watch(pid);
    if (opened) opened = source->open();
    if (opened) return source.get();
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", tracker_name(offer.traits.kind),
                           opened.error().message);
  }
  return fail(ErrorCode::kUnavailable, reasons.empty() ? "no tracker of that kind is built in"
                                                       : "no heat tracker: " + reasons);
}

}  // namespace tierpilot
