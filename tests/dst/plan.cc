#include "tests/dst/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/dst/loop.h"
#include "tests/dst/random.h"
#include "tests/dst/sharing.h"
#include "tests/dst/swapping.h"
#include "tests/dst/versions.h"

namespace tierpilot::dst {
namespace {

constexpr int64_t kBusyNs = 20 * kSecond;

Action draw_fault(Random& random, Kind kind) {
  Action action{.kind = kind, .at_ns = random.between(kSecond / 2, kBusyNs)};
  if (is_node_fault(kind)) action.node = static_cast<int>(random.between(0, kNodes - 1));
  // Shorter and longer than a lease.
  action.lasts_ns =
      random.chance(0.5) ? random.between(20 * kMs, kSecond) : random.between(kSecond, 7 * kSecond);
  switch (kind) {
    case Kind::kPartition:
      action.number = static_cast<uint64_t>(random.between(1, 3));
      break;
    case Kind::kCutInCommit:
      action.number = static_cast<uint64_t>(random.between(0, 12));
      break;
    case Kind::kKillInCommit:
    case Kind::kRebootInCommit:
      action.number = static_cast<uint64_t>(random.between(0, 3));
      break;
    case Kind::kStepWall:
    case Kind::kDamage:
      action.number = random.next();
      break;
    case Kind::kCheckDatasets:
      action.number = static_cast<uint64_t>(random.between(0, 1));
      break;
    case Kind::kChangeVersion:
      action.number = static_cast<uint64_t>(random.between(1, kVersions - 1));
      break;
    default:
      break;
  }
  return action;
}

bool is_allowed(Kind kind, const Kinds& included) {
  if (kind == Kind::kStopDaemon) return included.contains("stops");
  if (kind == Kind::kRefuseStarts) return included.contains("starts");
  if (kind == Kind::kFreeze || kind == Kind::kFreezeCoordinator) return included.contains("pauses");
  if (kind == Kind::kChangeVersion || kind == Kind::kDowngradeCoordinator)
    return included.contains("skew");
  if (kind == Kind::kDamage || kind == Kind::kCheckDatasets) return included.contains("damage");
  if (kind == Kind::kLoseDisk) return included.contains("losses");
  if (kind == Kind::kKillInCommit || kind == Kind::kRebootInCommit)
    return included.contains("writes");
  return true;
}

void draw_removal(Random& random, uint64_t dataset, Plan& plan) {
  const int64_t at_ns = random.between(3 * kSecond, kBusyNs);
  plan.push_back({.kind = Kind::kRemoveDataset, .at_ns = at_ns, .number = dataset});
  // Two ask for it at once, and it does not come to its end.
  if (random.chance(0.3))
    plan.push_back({.kind = Kind::kRemoveDataset,
                    .at_ns = at_ns + random.between(0, 20 * kMs),
                    .number = dataset});
  if (random.chance(0.2))
    plan.push_back({.kind = Kind::kCutCoordinator,
                    .at_ns = at_ns + random.between(0, 30 * kMs),
                    .lasts_ns = random.between(20 * kMs, 7 * kSecond)});
  if (random.chance(0.5))
    plan.push_back({.kind = Kind::kAddDataset,
                    .at_ns = at_ns + random.between(0, 2 * kSecond),
                    .number = dataset});
}

// Work, and what often goes wrong with it.
void draw_work(Random& random, uint64_t seed, const Kinds& included, Plan& plan) {
  const auto datasets = static_cast<int64_t>(datasets_of(seed));
  for (int64_t i = 0; i < datasets; ++i)
    plan.push_back({.kind = Kind::kAddDataset,
                    .at_ns = random.between(400 * kMs, 2 * kSecond),
                    .number = static_cast<uint64_t>(i)});
  const auto jobs = random.between(2, 10);
  for (int64_t i = 0; i < jobs; ++i) {
    // Before its datasets are there a job is refused.
    const int64_t from_ns = random.chance(0.15) ? kSecond : 5 * kSecond / 2;
    plan.push_back({.kind = Kind::kSubmit,
                    .at_ns = random.between(from_ns, kBusyNs),
                    .number = static_cast<uint64_t>(i)});
  }
  for (int64_t i = random.between(0, 2); i > 0; --i)
    plan.push_back({.kind = Kind::kCancel,
                    .at_ns = random.between(kSecond, kBusyNs),
                    .number = static_cast<uint64_t>(random.between(1, 20))});
  if (included.contains("removes"))
    for (int64_t i = random.between(0, 2); i > 0 && datasets > 0; --i)
      draw_removal(random, static_cast<uint64_t>(random.between(0, datasets - 1)), plan);
}

// Each run has some kinds of faults only: together they would hide one another.
void draw_faults(Random& random, const Kinds& included, Plan& plan) {
  const double share = random.chance(0.5) ? 0.1 : 0.4;
  std::vector<Kind> kinds;
  for (int kind = static_cast<int>(Kind::kKillCoordinator);
       kind <= static_cast<int>(Kind::kKillAtEnd); ++kind) {
    const bool drawn = random.chance(share);
    if (drawn && is_allowed(static_cast<Kind>(kind), included))
      kinds.push_back(static_cast<Kind>(kind));
  }
  if (kinds.empty()) return;
  for (int64_t i = random.between(0, 12); i > 0; --i) {
    const auto last = static_cast<int64_t>(kinds.size()) - 1;
    const auto fault = draw_fault(random, kinds[static_cast<size_t>(random.between(0, last))]);
    plan.push_back(fault);
    // Nobody knows of damage before somebody looks.
    if (fault.kind == Kind::kDamage && random.chance(0.5))
      plan.push_back({.kind = Kind::kCheckDatasets,
                      .at_ns = fault.at_ns + random.between(0, 3 * kSecond),
                      .number = static_cast<uint64_t>(random.between(0, 1))});
  }
}

// Drawn by themselves, so that what else happens in a run stays as it is without them.
void draw_apart(uint64_t seed, const char* kinds, Kind kind, int64_t most, Plan& plan) {
  Random random(seed, kinds);
  if (!random.chance(0.3)) return;
  for (int64_t i = random.between(1, most); i > 0; --i) {
    Action action{.kind = kind, .at_ns = random.between(kSecond, kBusyNs)};
    action.node = static_cast<int>(random.between(0, kNodes - 1));
    if (kind == Kind::kFailUnit) action.number = static_cast<uint64_t>(random.between(0, 1));
    plan.push_back(action);
  }
}

// A process often ends amid errors; whether the next one has counted on what is in the page cache
// alone, a power cut tells.
void draw_disk_errors(uint64_t seed, Plan& plan) {
  Random random(seed, "errors");
  if (!random.chance(0.3)) return;
  for (int64_t i = random.between(1, 3); i > 0; --i) {
    const int64_t at_ns = random.between(kSecond, kBusyNs);
    const int64_t lasts_ns = random.between(20 * kMs, 5 * kSecond);
    plan.push_back({.kind = Kind::kFailDisk,
                    .at_ns = at_ns,
                    .lasts_ns = lasts_ns,
                    .number = static_cast<uint64_t>(random.between(1, 9))});
    if (random.chance(0.5)) continue;
    plan.push_back({.kind = Kind::kKillCoordinator,
                    .at_ns = at_ns + random.between(0, lasts_ns),
                    .lasts_ns = random.between(20 * kMs, kSecond)});
    plan.push_back({.kind = Kind::kCutCoordinator,
                    .at_ns = at_ns + lasts_ns + random.between(0, 4 * kSecond),
                    .lasts_ns = random.between(20 * kMs, kSecond)});
  }
}

// By who mends the coordinator's machine, while that is down.
void draw_clock_steps(uint64_t seed, Plan& plan) {
  Random random(seed, "clock");
  if (!random.chance(0.2)) return;
  const int64_t at_ns = random.between(3 * kSecond, kBusyNs),
                lasts_ns = random.between(100 * kMs, 2 * kSecond);
  plan.push_back({.kind = random.chance(0.7) ? Kind::kKillCoordinator : Kind::kCutCoordinator,
                  .at_ns = at_ns,
                  .lasts_ns = lasts_ns});
  plan.push_back({.kind = Kind::kStepWall,
                  .at_ns = at_ns + random.between(0, lasts_ns),
                  .number = random.next()});
}

// What was written amid errors, a reboot tells.
void draw_node_disk_errors(uint64_t seed, Plan& plan) {
  Random random(seed, "node errors");
  if (!random.chance(0.3)) return;
  for (int64_t i = random.between(1, 4); i > 0; --i) {
    const int64_t at_ns = random.between(kSecond, kBusyNs),
                  lasts_ns = random.between(kSecond / 2, 8 * kSecond);
    const auto node = static_cast<int>(random.between(0, kNodes - 1));
    plan.push_back({.kind = Kind::kFailNodeDisk,
                    .at_ns = at_ns,
                    .node = node,
                    .lasts_ns = lasts_ns,
                    .number = static_cast<uint64_t>(random.between(1, 9))});
    if (random.chance(0.5))
      plan.push_back({.kind = Kind::kReboot,
                      .at_ns = at_ns + random.between(0, lasts_ns + 2 * kSecond),
                      .node = node,
                      .lasts_ns = random.between(20 * kMs, kSecond)});
  }
}

// By somebody else's files; who is told so asks another node, or later.
void draw_full_node_disks(uint64_t seed, Plan& plan) {
  Random random(seed, "room of nodes");
  if (!random.chance(0.3)) return;
  for (int64_t i = random.between(1, 4); i > 0; --i)
    plan.push_back({.kind = Kind::kFillNodeDisk,
                    .at_ns = random.between(kSecond, kBusyNs),
                    .node = static_cast<int>(random.between(0, kNodes - 1)),
                    .lasts_ns = random.between(kSecond / 2, 15 * kSecond)});
}

// A program may take all with it that runs on its GPU, which is well after that.
void draw_gpu_faults(uint64_t seed, Plan& plan) {
  Random random(seed, "faults of GPUs");
  if (!random.chance(0.5)) return;
  for (int64_t i = random.between(1, 4); i > 0; --i)
    plan.push_back({.kind = random.chance(0.5) ? Kind::kFailGpu : Kind::kLoseGpu,
                    .at_ns = random.between(kSecond, kBusyNs),
                    .node = static_cast<int>(random.between(0, kNodes - 1)),
                    .lasts_ns = random.between(kSecond / 2, 8 * kSecond),
                    .number = static_cast<uint64_t>(random.between(0, 1))});
}

// Its operator gives a node's tiers to others.
void draw_less_swap_room(uint64_t seed, Plan& plan) {
  Random random(seed, "less swap room");
  if (!random.chance(0.3)) return;
  for (int64_t i = random.between(1, 3); i > 0; --i)
    plan.push_back({.kind = Kind::kTakeSwapRoom,
                    .at_ns = random.between(kSecond, kBusyNs),
                    .node = static_cast<int>(random.between(0, kNodes - 1)),
                    .lasts_ns = random.between(kSecond / 2, 8 * kSecond),
                    .number = static_cast<uint64_t>(random.between(0, 9))});
}

}  // namespace

bool is_node_fault(Kind kind) {
  return kind >= Kind::kKillDaemon && kind < Kind::kFailDisk;
}

const char* kind_name(Kind kind) {
  static const char* const names[kKinds] = {"submit",
                                            "add-dataset",
                                            "remove-dataset",
                                            "cancel",
                                            "kill-coordinator",
                                            "power-cut",
                                            "power-cut-in-commit",
                                            "stop-coordinator",
                                            "pause-coordinator",
                                            "pause-coordinator-machine",
                                            "downgrade-coordinator",
                                            "check-datasets",
                                            "full-disk",
                                            "slow-disk",
                                            "step-wall-clock",
                                            "kill-daemon",
                                            "reboot-node",
                                            "stop-daemon",
                                            "pause-daemon",
                                            "partition",
                                            "evict",
                                            "refuse-starts",
                                            "kill-in-dataset-commit",
                                            "reboot-in-dataset-commit",
                                            "pause-machine",
                                            "change-version",
                                            "damage-disk",
                                            "lose-disk",
                                            "kill-at-end-of-task",
                                            "fail-unit",
                                            "reset-connection",
                                            "fail-node-disk",
                                            "fill-node-disk",
                                            "fail-gpu",
                                            "lose-gpu",
                                            "take-swap-room",
                                            "fail-disk",
                                            "remove-checkpoints"};
  return names[static_cast<int>(kind)];
}

std::string describe(const Action& action) {
  std::string text =
      fmt::format("{:8.3f} s  {}", static_cast<double>(action.at_ns) / 1e9, kind_name(action.kind));
  if (is_node_fault(action.kind)) text += fmt::format(" n{}", action.node + 1);
  if (action.kind == Kind::kPartition)
    text += action.number == 1 ? " from it" : action.number == 2 ? " to it" : " both ways";
  else if (action.kind < Kind::kKillCoordinator)
    text += fmt::format(" {}", action.number);
  else if (action.kind == Kind::kFailDisk || action.kind == Kind::kFailNodeDisk)
    text += fmt::format(" at {} in ten operations", action.number);
  else if (action.kind == Kind::kCutInCommit)
    text += fmt::format(" at disk operation {}", action.number);
  else if (action.kind == Kind::kKillInCommit || action.kind == Kind::kRebootInCommit)
    text += fmt::format(" at step {}", action.number);
  else if (action.kind == Kind::kFailUnit)
    text += fmt::format(" cpu/{}", action.number);
  else if (action.kind == Kind::kFailGpu || action.kind == Kind::kLoseGpu)
    text += fmt::format(" gpu {}", action.number);
  else if (action.kind == Kind::kTakeSwapRoom)
    text += fmt::format(" but for {} tenths", action.number);
  else if (action.kind == Kind::kChangeVersion)
    text += " to " + program_of(static_cast<Version>(action.number)).label();
  const bool lasts = action.kind >= Kind::kKillCoordinator && action.kind != Kind::kStepWall &&
                     action.kind != Kind::kCheckDatasets && action.kind != Kind::kDamage &&
                     action.kind != Kind::kFailUnit && action.kind != Kind::kReset &&
                     action.kind != Kind::kFailGpu && action.kind != Kind::kRemoveCheckpoints;
  if (lasts) text += fmt::format(" for {:.3f} s", static_cast<double>(action.lasts_ns) / 1e9);
  return text;
}

const Kinds& optional_kinds() {
  static const Kinds names{"stops",     "writes", "removes",  "starts",      "gangs",
                           "pauses",    "skew",   "damage",   "losses",      "units",
                           "resets",    "errors", "shares",   "checkpoints", "node-errors",
                           "node-room", "gpus",   "swap-room"};
  return names;
}

uint64_t datasets_of(uint64_t seed) {
  Random random(seed, "datasets");
  return random.chance(0.1) ? 0 : static_cast<uint64_t>(random.between(1, 3));
}

Plan make_plan(uint64_t seed, const Kinds& included) {
  Random random(seed, "plan");
  Plan plan;
  draw_work(random, seed, included, plan);
  draw_faults(random, included, plan);
  if (included.contains("units")) draw_apart(seed, "units", Kind::kFailUnit, 6, plan);
  if (included.contains("checkpoints"))
    draw_apart(seed, "removals of checkpoints", Kind::kRemoveCheckpoints, 3, plan);
  if (included.contains("resets")) draw_apart(seed, "resets", Kind::kReset, 8, plan);
  if (included.contains("errors")) draw_disk_errors(seed, plan);
  if (included.contains("shares")) draw_clock_steps(seed, plan);
  if (included.contains("node-errors")) draw_node_disk_errors(seed, plan);
  if (included.contains("node-room")) draw_full_node_disks(seed, plan);
  if (shares_gpus(seed, included)) draw_gpu_faults(seed, plan);
  if (swaps(seed, included)) draw_less_swap_room(seed, plan);
  if (is_calm(seed, included))
    std::erase_if(plan, [](const Action& action) { return action.kind >= Kind::kKillCoordinator; });
  std::stable_sort(plan.begin(), plan.end(),
                   [](const Action& a, const Action& b) { return a.at_ns < b.at_ns; });
  return plan;
}

}  // namespace tierpilot::dst
