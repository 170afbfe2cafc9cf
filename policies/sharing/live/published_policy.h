// `share-published` in time; its decisions are those of policies/sharing/published.h.
#pragma once

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

class PublishedPolicy final : public SharePolicy {
 public:
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  std::string refusal(const LiveUnit& unit, const WaitingJob& job) const override;
  Adjustment adjust(const LiveUnit& unit) override;
  // Makes every promise: the published one is what was predicted.
  std::unique_ptr<Promises> promises(const std::vector<LiveNode>&, const std::vector<WaitingJob>&,
                                     const std::vector<WaitingJob>&) override {
    return all_promises();
  }
};

}  // namespace tierpilot::sharing
