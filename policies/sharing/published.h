// Decisions of `share-published`, after a Chinese patent publication of 2022, "A GPU resource
// allocation method for deep learning tasks". A task comes with a set of predicted utilisations,
// one per type of unit, in thousandths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "policies/sharing/share.h"

namespace tierpilot::sharing {

using UtilisationSet = std::unordered_map<std::string, uint32_t>;  // by type of unit

struct PublishedUnit {
  std::string type;
  uint32_t free_milli = kWholeUnit;
  uint32_t best_effort_milli = 0;  // held by best-effort tasks
};

struct PublishedPlace {
  size_t node = 0;
  size_t unit = 0;
  uint32_t milli = 0;           // given
  uint32_t released_milli = 0;  // of it taken from best-effort tasks
  bool operator==(const PublishedPlace&) const = default;
};

using PublishedNode = std::vector<PublishedUnit>;

// The control node's choice: of the nodes with a unit whose free share covers the task the one
// whose unit has most of it, of equals the first. A latency-sensitive task that fits nowhere takes
// what best-effort tasks hold, where that suffices. Nothing: the task waits in the queue of its
// class.
std::optional<PublishedPlace> place_published(const std::vector<PublishedNode>& nodes,
                                              const UtilisationSet& need, JobClass job_class);

// The worker node's choice: the unit with the most free share, or for a best-effort task the one
// that covers it and has the shortest predicted run time (by type of unit, seconds).
std::optional<size_t> unit_published(const PublishedNode& node, const UtilisationSet& need,
                                     const std::unordered_map<std::string, double>& run_s,
                                     JobClass job_class);

inline constexpr uint32_t kGrowthStepMilli = 100;

// What a latency-sensitive task is to have from now on: a step more than now when elapsed and
// predicted remaining time together exceed what was promised, at most a whole unit.
uint32_t grown_published(uint32_t milli, double elapsed_s, double remaining_s, double promised_s);

// Whether the limiter pauses a task: it uses more than its share and will keep its promise.
bool pauses_published(uint32_t milli, uint32_t used_milli, double elapsed_s, double remaining_s,
                      double promised_s);

}  // namespace tierpilot::sharing
