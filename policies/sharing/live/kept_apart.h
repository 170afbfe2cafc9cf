// Jobs that were ended because they slowed one with a promise more than was thought. Alone that one
// seems to bear them again: started beside it they would be ended again, without end.
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

// By the promised job and the other's name, as slow-downs are known by names. Until the pair has
// been measured, the promised one has ended, or needs a good part less of its speed than when it
// seemed to bear the other.
class KeptApart {
 public:
  explicit KeptApart(Retained retained) : retained_(std::move(retained)) {}

  void ended(const LiveJob& job, const LiveJob& slowed);
  // The job there that it is kept apart from; nothing: there is none.
  std::optional<uint64_t> on(const LiveUnit& unit, const WaitingJob& job) const;

 private:
  static constexpr size_t kMost = 4096;  // the oldest are forgotten

  struct Pair {
    uint64_t slowed = 0;
    std::string name;       // of the other
    uint32_t measured = 0;  // times, when it was ended
    double borne = 0;       // the need of speed beside which it may come back
  };
  using Pairs = std::list<Pair>;
  uint32_t measured(const Sharer& slowed, const Sharer& by) const;
  void remember(Pair pair);

  Retained retained_;
  Pairs pairs_;  // the oldest first
  std::unordered_multimap<uint64_t, Pairs::iterator> of_slowed_;
};

}  // namespace tierpilot::sharing
