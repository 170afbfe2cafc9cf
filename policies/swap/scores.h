// The eviction scores of Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021) and of its
// rivals there: the candidate with the least score leaves, one at a time, until there is room. They
// decide online: nothing of what the program has not done yet is known.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/random.h"
#include "policies/swap/neighbourhood.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

struct Score {
  enum class Cost : uint8_t {
    kNeighbourhood,  // own cost and that of evicted ancestors and descendants
    kClasses,        // own cost and that of the classes of evicted neighbours
    kAncestors,      // own cost and that of evicted ancestors
    kLocal,          // own cost
    kNone,           // 1
  };
  Cost cost = Cost::kNone;
  bool by_size = false;       // over the bytes
  bool by_staleness = false;  // over the time since the last access
  bool random = false;
  // What only recomputing brought back, and the program can never ask for, goes before all else.
  bool unreferenced_first = false;
  // With the log read first: staleness is the time to the next use, and what has none goes first.
  bool look_ahead = false;
};

struct NamedScore {
  std::string_view name;
  Score score;
};
// Lists that last until the process has ended: plans may be made while it does.
//
// The rivals as published: h_DTR, h_DTR_eq, h_DTR_local, h_MSPS, h_LRU, h_size, h_rand.
std::span<const NamedScore> rival_scores();
// Scores that let go first of what only recomputing brought back; online ones and such that look
// ahead.
std::span<const NamedScore> own_scores();
// Of both; nothing for other names.
std::optional<Score> score_by_name(std::string_view name);

class ScoredEviction : public Manager {
 public:
  // `seed` is for h_rand.
  ScoredEviction(const Graph& graph, const Score& score, uint64_t seed);
  // With a neighbourhood that was made before and outlives this.
  ScoredEviction(const Graph& graph, const Score& score, uint64_t seed, const Neighbourhood& near);
  // Factors on the score of each storage, for searches: has to outlive this.
  void set_bias(const std::vector<float>& bias) { bias_ = &bias; }
  // It gives up when it has looked at so many candidates in all.
  void set_most_looks(int64_t looks) { looks_left_ = looks; }

  bool make_room(Machine& machine, int64_t bytes) override;
  bool frees_unreferenced() const override { return true; }
  void left(Machine& machine, StorageId storage) override;
  void arrived(Machine& machine, StorageId storage) override;
  void before(Machine&, OperatorId op) override { now_ = op; }
  void after(Machine& machine, OperatorId op) override;
  // What it would drop next; kNone where nothing can be dropped.
  StorageId victim(const Machine& machine);

 private:
  ScoredEviction(const Graph& graph, const Score& score, uint64_t seed,
                 std::unique_ptr<const Neighbourhood> own);

  // A score is a cost over this.
  double below(const Machine& machine, StorageId storage, int64_t now_ns);
  // What the cost is at least, fast.
  double least_cost(const Machine& machine, StorageId storage) const;
  // One above `most` may be less than the whole.
  double cost(const Machine& machine, StorageId storage, double most);
  bool orders_by_access() const { return score_.cost == Score::Cost::kNone && !score_.by_size; }
  bool useless(const Machine& machine, StorageId storage);
  Position next_use(StorageId storage);

  Score score_;
  const std::vector<float>* bias_ = nullptr;
  std::optional<Timetable> timetable_;
  std::vector<Position> next_uses_;  // as of when they were asked for: known until they have passed
  Position now_ = 0;
  SeededRandom random_;
  std::unique_ptr<const Neighbourhood> own_near_;
  const Neighbourhood& near_;
  std::vector<double> bytes_;  // by storage; 1 where they do not count
  int64_t looks_left_ = std::numeric_limits<int64_t>::max();
  std::optional<EvictedSums> sums_;
  std::optional<EvictedClasses> classes_;
};

}  // namespace tierpilot::swap
