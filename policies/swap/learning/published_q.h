// The published learner of which tensors leave: a table of Q values over plans.
//
// "Model training method and system based on reinforcement-learning memory scheduling decisions"
// (a patent publication of 2022). A state is the whole plan, an action changes the entries of the
// tensors of one layer type, Q(s,t) += alpha (R + gamma Q(s',t') - Q(s,t)) with the pair (s',t')
// that is really chosen next, and the reward is minimised: greedy is the least Q. Epsilon and w are
// not published.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/random.h"

namespace tierpilot::swap {

struct PublishedSettings {
  double alpha = 0.5, gamma = 0.9;
  double epsilon = 0.1;
  double w = 0.5;  // of memory in the reward; the rest is time
  uint64_t seed = 1;
};

class PublishedQ {
 public:
  // `kinds`: each tensor's layer type. `plan`: the first one, 1 for what leaves.
  PublishedQ(const std::vector<uint32_t>& kinds, std::vector<char> plan,
             const PublishedSettings& settings = {});

  const std::vector<char>& plan() const { return plan_; }
  // A round under the plan has ended, and the next plan is chosen. Time and peak are shares of what
  // they are held to: computing alone, and the budget.
  void end_round(double time, double memory);
  // R = time + w (memory - time).
  double reward(double time, double memory) const;
  size_t pairs() const { return q_.size(); }

 private:
  struct Action {
    uint32_t kind;  // index of a layer type
    bool leaves;
  };
  uint64_t pair(uint64_t state, const Action& action) const;
  uint64_t state() const;
  Action choose();
  double value(uint64_t pair) const;

  PublishedSettings settings_;
  std::vector<uint32_t> type_of_;  // by tensor
  uint32_t types_ = 0;
  std::vector<char> plan_;
  std::unordered_map<uint64_t, double> q_;
  uint64_t last_ = 0;  // the pair whose round runs; 0: the first plan's, which nobody chose
  SeededRandom random_;
};

}  // namespace tierpilot::swap
