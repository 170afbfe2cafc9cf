// What rivals have in common that place a job once and leave it at that.
#pragma once

#include <memory>
#include <vector>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

class PlainPolicy : public SharePolicy {
 public:
  Adjustment adjust(const LiveUnit&) override { return {}; }
  // Makes every promise.
  std::unique_ptr<Promises> promises(const std::vector<LiveNode>&, const std::vector<WaitingJob>&,
                                     const std::vector<WaitingJob>&) override {
    return all_promises();
  }
};

}  // namespace tierpilot::sharing
