// What happens in one run: work and faults, each at its moment, all drawn from the seed before
// anything begins. So a run can be repeated without some of them, which is how a history shrinks.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tierpilot::dst {

inline constexpr int kNodes = 3;

enum class Kind {
  kSubmit,
  kAddDataset,
  kRemoveDataset,
  kCancel,
  kKillCoordinator,
  kCutCoordinator,
  kCutInCommit,
  kStopCoordinator,
  kPauseCoordinator,
  kFreezeCoordinator,
  kDowngradeCoordinator,
  kCheckDatasets,
  kFullDisk,
  kSlowDisk,
  kStepWall,
  kKillDaemon,
  kReboot,
  kStopDaemon,
  kPauseDaemon,
  kPartition,
  kEvict,
  kRefuseStarts,
  kKillInCommit,
  kRebootInCommit,
  kFreeze,
  kChangeVersion,
  kDamage,
  kLoseDisk,
  kKillAtEnd,
  kFailUnit,
  kReset,
  kFailNodeDisk,
  kFillNodeDisk,
  kFailGpu,
  kLoseGpu,
  kTakeSwapRoom,
  kFailDisk,
  kRemoveCheckpoints,
};
inline constexpr int kKinds = static_cast<int>(Kind::kRemoveCheckpoints) + 1;
const char* kind_name(Kind kind);
bool is_node_fault(Kind kind);

struct Action {
  Kind kind = Kind::kSubmit;
  int64_t at_ns = 0;
  int node = 0;
  int64_t lasts_ns = 0;
  uint64_t number =
      0;  // which job, dataset, version or unit; of a partition 1: up, 2: down, 3: both
};
using Plan = std::vector<Action>;  // in the order of time

// For people: "12.345 s: daemon of n2 killed for 0.8 s".
std::string describe(const Action& action);

// Faults and work that can be left out; those that are not named stay out.
//   stops    a daemon is stopped gracefully
//   writes   tasks write datasets
//   removes  datasets are removed
//   starts   a node cannot start what it is given
//   gangs    tasks of several ranks
//   pauses   a machine stands still, and its clock with it
//   skew     programs of other versions
//   damage   bytes on a node's disk change
//   losses   a node comes back with an empty disk
//   units    compute units fail
//   resets   a node's connection breaks, with all that was on its way
//   errors   the coordinator's disk fails now and then
//   node-errors  and so do those of nodes
//   node-room  a node's disk is full for a while
//   shares   tasks with shares of cores, and promises
//   gpus     with shares of GPUs, which fail
//   swap-room  room for swapping
//   checkpoints  jobs that save their work
using Kinds = std::set<std::string>;
const Kinds& optional_kinds();

Plan make_plan(uint64_t seed, const Kinds& included);
// That its plan adds; a job that names another one is refused.
uint64_t datasets_of(uint64_t seed);

}  // namespace tierpilot::dst
