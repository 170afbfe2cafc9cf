// Which pages should be in which memory: heat, tiers and budgets in, moves out. Pure: no system
// call, no clock, and the same input gives the same plan.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tierpilot {

inline constexpr size_t kMaxTiers = 8;

// NUMA nodes with memory of one kind, as fast as each other.
struct PagingTier {
  std::string name;
  std::vector<int> nodes;                   // moves go to the first one that has room
  double latency_ns = 0;                    // of an idle tier
  std::optional<double> loaded_latency_ns;  // now; needed by kBalance
  std::string loaded_latency_unavailable;   // the reason when it is not known
  uint64_t capacity_bytes = 0;
  uint64_t free_bytes = 0;
};

enum class PagingPolicy {
  kStatic,   // every page of a group in the group's tier
  kHeat,     // the hottest pages in the fastest tier
  kBalance,  // hot pages so spread that the loaded latencies of the two fastest tiers are level
};

enum class PagingMode {
  kObserve,  // heat is measured, nothing is planned
  kAdvise,   // moves are planned and told
  kEnforce,  // and made
};

std::string_view policy_name(PagingPolicy policy);
Result<PagingPolicy> policy_from_name(std::string_view name);
std::string_view mode_name(PagingMode mode);
Result<PagingMode> mode_from_name(std::string_view name);

// What is placed alike and shares a budget: a task, a dataset, a process, a cgroup.
struct PagingGroup {
  std::string name;
  PagingPolicy policy = PagingPolicy::kHeat;
  std::optional<uint64_t> fast_budget_bytes;  // of the fastest tier; nothing: no bound but its size
  size_t static_tier = 0;                     // for kStatic; an index into the tiers
};

// A stretch of one process's memory that is placed as a whole.
struct PagingChunk {
  size_t group = 0;  // index into the groups
  pid_t pid = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t page_bytes = 0;
  bool heat_known = false;                          // else it is neither promoted nor evicted
  float heat = 0;                                   // accesses per page and second
  float heat_error = 0;                             // its standard error, where that is known
  std::array<uint32_t, kMaxTiers> pages_in_tier{};  // resident pages of page_bytes

  uint64_t bytes_in(size_t tier) const { return uint64_t{pages_in_tier[tier]} * page_bytes; }
  uint64_t resident_bytes() const;
};

struct PagingLimits {
  uint64_t move_bytes = UINT64_MAX;  // this round's share of the rate cap, both directions together
  double reserve_share = 0.02;       // of each tier's capacity, kept free
  // A page takes another one's place only if it is hotter by this share: what differs less than
  // noise would swap for ever.
  double hysteresis = 0.3;
  // And by so many standard errors of their difference: among hundreds of chunks that are alike
  // some are two or three above or below the others by chance.
  double significance = 4;
  // Colder pages (accesses per page and second) are not worth a move upwards.
  double min_heat = 0.05;
};

// Bounds between which the balance is sought, kept from round to round (start with {}).
struct BalanceState {
  double low = 0;  // shares of all accesses that the fast tier gets
  double high = 1;
};

struct PagingInput {
  std::vector<PagingTier> tiers;  // fast to slow, at most kMaxTiers
  std::vector<PagingGroup> groups;
  std::vector<PagingChunk> chunks;
  PagingLimits limits;
  BalanceState balance;
};

enum class MoveReason {
  kHot,         // hotter than what is in the faster tier, or room is left there
  kMakeRoom,    // colder than what takes its place
  kOverBudget,  // its group holds more fast memory than its budget
  kRule,        // a static rule names the tier
  kLevelUp,     // the faster tier answers sooner under load
  kLevelDown,   // the faster tier is overloaded
};

std::string_view move_reason_text(MoveReason reason);

struct PageMove {
  size_t group = 0;
  pid_t pid = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t page_bytes = 0;
  size_t to_tier = 0;
  size_t from_tier = 0;  // where most of it is
  uint64_t bytes = 0;    // what is not there yet
  float heat = 0;
  MoveReason reason = MoveReason::kHot;
  // Access time saved per second by the accesses that were seen; negative for what makes room.
  double gain_ns_per_s = 0;
};

struct MovePlan {
  std::vector<PageMove> moves;  // in the order to make them: room is made before it is used
  BalanceState balance;
  std::vector<std::string> notes;  // what could not be done, and why

  uint64_t bytes() const;
};

// kInvalid for an input that contradicts itself: indices out of range, too many tiers.
Result<MovePlan> plan_moves(const PagingInput& input);

}  // namespace tierpilot
