// Rivals that give what the user asks for, or whole units, and leave it at that.
#pragma once

#include "policies/sharing/live/plain_policy.h"

namespace tierpilot::sharing {

class GivenPolicy final : public PlainPolicy {
 public:
  explicit GivenPolicy(bool whole_units) : whole_units_(whole_units) {}
  // The unit where the least is left, of equals the first.
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  std::string refusal(const LiveUnit& unit, const WaitingJob& job) const override;

 private:
  Share given_of(const LiveUnit& unit, const WaitingJob& job) const;

  bool whole_units_;
};

}  // namespace tierpilot::sharing
