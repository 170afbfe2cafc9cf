// Rivals that give what the user asks for, or whole units, and leave it at that.
#pragma once

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

class GivenPolicy final : public SharePolicy {
 public:
  explicit GivenPolicy(bool whole_units) : whole_units_(whole_units) {}
  // The unit where the least is left, of equals the first.
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  Adjustment adjust(const LiveUnit&) override { return {}; }
  // Makes every promise.
  Admission admit(const std::vector<LiveNode>&, const std::vector<WaitingJob>&,
                  const WaitingJob&) override {
    return {};
  }

 private:
  bool whole_units_;
};

}  // namespace tierpilot::sharing
