// The published Q table on a step that is replayed again and again: each replay is a round.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/swap/graph.h"
#include "policies/swap/learning/published_q.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/outcome.h"
#include "policies/swap/plan.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

inline constexpr int kPublishedRounds = 200;

class PublishedReplay {
 public:
  // `graph` has to outlive this. `plan`: what leaves in the first round, as plan() of another one
  // of the same graph; all without it.
  PublishedReplay(const Graph& graph, const Limits& limits, uint64_t seed,
                  std::vector<char> plan = {});
  // Replays the step under the plan, and learns from it.
  Outcome round();
  const std::vector<char>& plan() const { return table_->plan(); }

 private:
  const Graph& graph_;
  const Timetable timetable_;
  Limits limits_;
  std::vector<StorageId> storages_;
  std::vector<Absence> absences_;
  std::optional<PublishedQ> table_;
};

// The best of so many rounds that got through; the last one when none did. The first plan lets all
// leave. A replayed step is the same in each round, so that training before on a part of the data
// (the publication's pre-training) is the same as more rounds.
Outcome replay_published(const Graph& graph, const Limits& limits, uint64_t seed);

}  // namespace tierpilot::swap
