// `share`: shares fitted to what jobs need to keep their promises.
#pragma once

#include "policies/sharing/live/kept_apart.h"

namespace tierpilot::sharing {

class FittedPolicy final : public SharePolicy {
 public:
  explicit FittedPolicy(Retained retained) : retained_(retained), apart_(std::move(retained)) {}

  // Where the job gets what it is predicted to use and nobody is slowed down too much; of such
  // units the one to whose sum of speeds it adds most, of equals the one that is left the fullest.
  // Without a promise it waits where that adds little: one after the other is as fast. A job with a
  // promise that fits nowhere takes what best-effort jobs can give up.
  std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) override;
  std::string refusal(const LiveUnit& unit, const WaitingJob& job) const override;
  // Who has a promise gets as much as it needs to keep it, and gives back what it does not; the
  // others share the rest by what they use. Whom it ends for a neighbour's promise is kept apart
  // from that one.
  Adjustment adjust(const LiveUnit& unit) override;
  // By the time at which units become free as predicted, those ahead first.
  std::unique_ptr<Promises> promises(const std::vector<LiveNode>& nodes,
                                     const std::vector<WaitingJob>& ahead,
                                     const std::vector<WaitingJob>& coming) override;

 private:
  Retained retained_;
  KeptApart apart_;
};

}  // namespace tierpilot::sharing
