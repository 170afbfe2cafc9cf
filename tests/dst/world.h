// One run: coordinator, nodes, clients and network, what the plan does to them, and what must hold
// after every step and when all is quiet again.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/dst/client.h"
#include "tests/dst/losses.h"
#include "tests/dst/node.h"
#include "tests/dst/plan.h"
#include "tests/dst/room_checks.h"

namespace tierpilot::dst {

struct WorldOptions {
  Kinds included;
  std::set<std::string> held;   // invariants; empty: all
  bool keeps_old_home = true;   // see Pool; false shows why
  bool notices_pauses = true;   // see Warden; false shows why
  bool tells_kept_ends = true;  // see Daemon; false shows why
  std::filesystem::path directory;
  uint64_t most_steps = 2'000'000;
  std::function<void(const std::string&)> tell;  // the history, if anybody wants it
};

class World {
 public:
  World(uint64_t seed, const Plan& plan, const WorldOptions& options);
  ~World();

  // The first promise that does not hold.
  std::optional<Violation> run();
  uint64_t steps() const { return steps_; }

 private:
  void act(const Action& action);
  void act_on_coordinator(const Action& action);
  void act_on_node(const Action& action);
  void heal();
  // Until `done`; false: not by then.
  bool run_until(int64_t until_ns, const std::function<bool()>& done);
  void check_step();
  void check_gangs();
  void check_catalog();
  void check_units();
  void check_tries();
  void check_saved();
  void check_shares();
  void check_parts(const Node& node);
  void check_grows(const Node& node, const Warden::Part& part, uint32_t free);
  void check_placed_parts();
  void check_given(const std::pair<std::string, uint32_t>& unit, uint32_t milli,
                   uint64_t memory_bytes);
  void check_trials();
  void check_free_units();
  void disturbed_by(const Action& action);
  // That have bytes of it which can be read.
  size_t keepers_of(const CheckpointName& name) const;
  bool may_be_back(const CheckpointName& name, const Node& node) const;
  std::optional<CheckpointName> least_of(const Task& job, std::string& why) const;
  bool is_known(const std::string& node, const std::string& dataset) const;
  bool is_held_well(const CheckpointName& name, const Node& node) const;
  void check_quiet();
  void check_datasets();
  void check_memory();
  void check_bounds();
  void check_copies();
  std::string left_over() const;
  bool copies_are_enough() const;
  void check_published(const std::string& dataset, uint64_t version, Digest content);
  void cancel_users_of_lost();
  bool all_ended() const;
  void tell(const std::string& what);
  const Stored* find(const std::string& node, const DatasetId& id) const;

  const WorldOptions options_;
  const uint64_t seed_;
  Loop loop_;
  Disk disk_;
  Judge judge_;
  Network network_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Losses losses_;
  RoomChecks room_checks_;
  Client client_;
  uint64_t steps_ = 0;
  const bool has_shares_, swaps_;
  int64_t disturbed_until_ns_ = 0;       // what fails has been got over by then
  std::map<uint64_t, uint32_t> placed_;  // the attempt that has a part of a unit
  // What may be for a moment, and since when it is.
  std::map<AttemptId, int64_t> lacks_since_ns_;
  std::map<std::pair<std::string, uint32_t>, int64_t> over_since_ns_;
  std::map<uint64_t, int64_t> on_trial_since_ns_;
  bool nodes_are_well_ = true;          // no fault has met one yet
  std::map<uint64_t, uint32_t> tried_;  // the try of each job that was placed last
};

}  // namespace tierpilot::dst
