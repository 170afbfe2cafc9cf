// `share-published` in time; its decisions are those of policies/sharing/published.h.
#pragma once

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

class PublishedPolicy final : public SharePolicy {
 public:
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  Adjustment adjust(const LiveUnit& unit) override;
  // Makes every promise: the published one is what was predicted.
  Admission admit(const std::vector<LiveNode>&, const std::vector<WaitingJob>&,
                  const WaitingJob&) override {
    return {};
  }
};

}  // namespace tierpilot::sharing
