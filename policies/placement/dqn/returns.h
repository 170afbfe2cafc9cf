// n-step returns (Sutton and Barto, Reinforcement Learning, 2nd ed., 7.1): what a decision and the
// n - 1 after it cost, as measured, and from where on the rest is estimated. With many steps that
// is a Monte-Carlo return.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <unordered_map>

#include "policies/learning/replay.h"
#include "policies/placement/dqn/tokens.h"

namespace tierpilot {

class Returns {
 public:
  using Step = Experience<TokenSet>;

  // Both in units of the first decision's scale_s.
  struct Sum {
    double measured = 0;
    double weight = 0;                     // of the value of `rest`
    std::shared_ptr<const TokenSet> rest;  // null: nothing came after
  };

  // Knows the newest `capacity` experiences.
  Returns(size_t steps, double gamma, size_t capacity);

  void add(const Step& step);
  void clear();
  // Ends early at a decision whose cost is not known: it is still running, failed, or too old.
  Sum from(const Step& first) const;

 private:
  const Step* after(const Step& step) const;

  size_t steps_;
  double gamma_;
  size_t capacity_;
  std::unordered_map<const TokenSet*, Step> by_sight_;
  std::deque<const TokenSet*> order_;
};

}  // namespace tierpilot
