// The attempts that this node has or remembers. Owned by the event loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "daemon/agent/tasks/attempt.h"

namespace tierpilot::agent {

class Attempts {
 public:
  using ById = std::map<AttemptId, std::unique_ptr<Attempt>>;

  // `forgotten` is told of a task that nothing is remembered of any more.
  explicit Attempts(std::function<void(uint64_t task)> forgotten)
      : forgotten_(std::move(forgotten)) {}

  Attempt& add(std::unique_ptr<Attempt> attempt);
  void erase(AttemptId id);
  // Of those that have ended and are acknowledged, the oldest go until no more than so many are
  // left.
  void forget_surplus(size_t most);

  Attempt* find(AttemptId id) const;
  // Of the same task; null: there is none.
  const Attempt* newer(AttemptId id) const;
  Attempt* unended_older(AttemptId id) const;
  // The first newer one, if it waits for just this one.
  Attempt* unblocked_by(AttemptId ended) const;
  const ById& all() const { return by_id_; }

  // Not ended, or ended and not acknowledged.
  std::vector<AttemptId> live() const;
  // Not ended: their directories must stay.
  std::set<AttemptId> held() const;
  size_t unended() const;
  bool idle() const { return unended() == 0; }
  size_t running() const;
  size_t remembered() const { return by_id_.size(); }
  // At which the ranks of its gang meet; 0: it is in none.
  uint16_t master_port(AttemptId id) const;

 private:
  const std::function<void(uint64_t)> forgotten_;
  ById by_id_;
};

}  // namespace tierpilot::agent
