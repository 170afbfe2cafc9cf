// Rivals that give what the user asks for, or whole units, and leave it at that.
#pragma once

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

class GivenPolicy final : public SharePolicy {
 public:
  explicit GivenPolicy(bool whole_units) : whole_units_(whole_units) {}
  // The unit where the least is left, of equals the first.
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  std::string refusal(const LiveUnit& unit, const WaitingJob& job) const override;
  Adjustment adjust(const LiveUnit&) override { return {}; }
  // Makes every promise.
  std::unique_ptr<Promises> promises(const std::vector<LiveNode>&, const std::vector<WaitingJob>&,
                                     const std::vector<WaitingJob>&) override {
    return all_promises();
  }

 private:
  Share given_of(const LiveUnit& unit, const WaitingJob& job) const;

  bool whole_units_;
};

}  // namespace tierpilot::sharing
