// Handing trained weights over to the thread that decides.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "policies/dqn/q_network.h"

namespace tierpilot {

// The network learns z with reward = mean + deviation * z.
struct RewardScale {
  double mean = 0;
  double deviation = 1;

  double normalise(double reward) const { return (reward - mean) / deviation; }
  // A discounted sum of rewards from one of normalised rewards.
  double q_in_reward_units(double q, double gamma) const {
    return q * deviation + mean / (1 - gamma);
  }
};

struct Weights {
  QNetwork network;
  uint64_t version = 1;
  RewardScale scale;
};

// From one training thread to one decision thread, neither of which ever waits: the trainer runs at
// low priority, and a lock that it holds while it is off the core would stop decisions.
class WeightsMailbox {
 public:
  using Pointer = std::shared_ptr<const Weights>;

  WeightsMailbox() = default;
  ~WeightsMailbox();

  // Training thread. Also frees what the decision thread has done with.
  void put(Pointer weights);
  // Decision thread: the newest weights, null before the first put(). Valid until the next call.
  const Weights* newest();

 private:
  std::atomic<Pointer*> fresh_ = nullptr;
  std::atomic<Pointer*> done_with_ = nullptr;  // freeing 27 MB takes longer than a decision may
  std::unique_ptr<Pointer> current_;           // decision thread only
};

}  // namespace tierpilot
