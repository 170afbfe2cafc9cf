// A policy that two threads may ask: the decision thread, which has time, and the event loop, which
// must not wait but loses more by handing a short decision over than by taking it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "policies/interface/policy.h"

namespace tierpilot {

// What `policy` decides; the fallback's choice, marked as a fault, when it throws.
Decision decide_or_fall_back(Policy& policy, const View& view);

class SharedPolicy {
 public:
  // Handing a decision over costs about as much. The shortest deadline that can be set.
  static constexpr double kQuickNs = 100'000;

  // `trusted`: it is known to be quick; else it has to show it by some tens of decisions.
  SharedPolicy(std::string name, std::unique_ptr<Policy> policy, bool trusted)
      : name_(std::move(name)), policy_(std::move(policy)), trusted_(trusted) {}

  const std::string& name() const { return name_; }
  // Waits while the other thread asks.
  Decision decide(const View& view);
  // Empty, at once: the other thread asks, or it is not quick. One that has become slow has to show
  // again, where it holds up nobody, that it is quick.
  std::optional<Decision> decide_if_quick(const View& view);

 private:
  Decision decide_timed(const View& view);

  const std::string name_;
  const std::unique_ptr<Policy> policy_;
  const bool trusted_;
  std::mutex mutex_;
  double usual_ns_ = 4 * kQuickNs;  // exponentially weighted mean of what decisions cost
};

}  // namespace tierpilot
