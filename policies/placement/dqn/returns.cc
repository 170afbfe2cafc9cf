#include "policies/placement/dqn/returns.h"

namespace tierpilot {

Returns::Returns(size_t steps, double gamma, size_t capacity)
    : steps_(steps), gamma_(gamma), capacity_(capacity) {}

void Returns::add(const Step& step) {
  if (gamma_ == 0 || steps_ == 1) return;  // nothing is looked up
  if (!by_sight_.try_emplace(step.seen.get(), step).second) return;
  order_.push_back(step.seen.get());
  if (order_.size() <= capacity_) return;
  by_sight_.erase(order_.front());
  order_.pop_front();
}

void Returns::clear() {
  by_sight_.clear();
  order_.clear();
}

const Returns::Step* Returns::after(const Step& step) const {
  const auto found = by_sight_.find(step.next.get());
  return found == by_sight_.end() ? nullptr : &found->second;
}

Returns::Sum Returns::from(const Step& first) const {
  Sum sum{.measured = first.reward, .weight = 0, .rest = nullptr};
  double discount = 1;
  const Step* last = &first;
  for (size_t step = 1; step < steps_ && gamma_ > 0; ++step) {
    const Step* next = after(*last);
    if (!next) break;
    discount *= gamma_;
    sum.measured += discount * next->seen->scale_s / first.seen->scale_s * next->reward;
    last = next;
  }
  if (!last->next || gamma_ == 0) return sum;
  sum.weight = discount * gamma_ * last->next->scale_s / first.seen->scale_s;
  sum.rest = last->next;
  return sum;
}

}  // namespace tierpilot
