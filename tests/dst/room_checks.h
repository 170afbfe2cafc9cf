// What must hold of room for swapping as the coordinator gives it (docs/swap-room.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/dst/node.h"

namespace tierpilot::dst {

class RoomChecks {
 public:
  // `nodes` and `coordinator` live as long.
  RoomChecks(Loop& loop, Judge& judge, const std::vector<std::unique_ptr<Node>>& nodes,
             Coordinator& coordinator)
      : loop_(loop), judge_(judge), nodes_(nodes), coordinator_(coordinator) {}

  // At every step. Until `disturbed_until_ns` what has failed is not got over.
  void check(int64_t disturbed_until_ns);
  // Nobody has any when all have ended.
  void check_quiet();
  // Whether the coordinator can tell what is too much.
  bool knows_all_nodes() const;
  // Whatever the nodes offered in this run: of room it asks for more, or for so little.
  bool never_fits(const TaskSpec& spec) const;
  bool always_fits(const TaskSpec& spec) const;

 private:
  void check_given();
  void check_placed(bool is_disturbed);
  void check_order(const Task& placed) const;
  void check_waits(int64_t disturbed_until_ns);
  bool could_be_placed(const Task& task) const;

  Loop& loop_;
  Judge& judge_;
  const std::vector<std::unique_ptr<Node>>& nodes_;
  Coordinator& coordinator_;
  std::map<uint64_t, uint32_t> placed_;        // the attempt of each task that is on a node
  std::map<uint64_t, int64_t> idle_since_ns_;  // since when a task waits that could be placed
  std::set<uint64_t> lack_room_;               // who waited for room a step ago
};

}  // namespace tierpilot::dst
