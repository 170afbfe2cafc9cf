#include "coordinator/core/queue/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/memory_wish.h"
#include "base/text/utf8.h"
#include "coordinator/core/gangs/gang_capacity.h"
#include "coordinator/core/queue/share_admission.h"
#include "model/swap_room.h"

namespace tierpilot {
namespace {

constexpr size_t kMaxCommandBytes = 128 * 1024;  // what one execve argument may hold
constexpr size_t kMaxNameBytes = 1024;           // of all that it causes to fail, each tells it
constexpr uint32_t kMaxUnits = 1'000'000;
// Of times from now on: clocks count in nanoseconds.
constexpr int64_t kLongest_ms = int64_t{3650} * 24 * 3600 * 1000;

std::string label(const TaskSpec& spec, size_t index) {
  return spec.name.empty() ? fmt::format("task #{}", index + 1)
                           : fmt::format("task '{}'", spec.name);
}

// Others name it, and it is shown; arguments may be any bytes.
Status check_name(const TaskSpec& spec, size_t index) {
  if (spec.name.size() > kMaxNameBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("task #{}: its name has {} bytes, at most {} are taken", index + 1,
                            spec.name.size(), kMaxNameBytes));
  if (!is_utf8(spec.name) || spec.name.find('\0') != std::string::npos)
    return fail(ErrorCode::kInvalid,
                fmt::format("task #{}: its name is not text (UTF-8)", index + 1));
  return {};
}

Status check_command(const TaskSpec& spec, const std::string& who) {
  if (spec.argv.empty() || spec.argv.front().empty())
    return fail(ErrorCode::kInvalid, who + ": the command is empty");
  size_t bytes = 0;
  for (const auto& argument : spec.argv) {
    if (argument.find('\0') != std::string::npos)
      return fail(ErrorCode::kInvalid,
                  who + ": an argument has a NUL byte in it, where a program would see its end");
    bytes += argument.size() + 1;
  }
  for (const auto& [name, value] : spec.env) {
    if (name.empty() || name.find('=') != std::string::npos)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: '{}' is not a name of an environment variable", who, name));
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: the environment variable '{}' has a NUL byte in it", who,
                              name.substr(0, name.find('\0'))));
    bytes += name.size() + value.size() + 2;
  }
  if (bytes > kMaxCommandBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: command and environment are {} bytes, at most {} are taken: pass "
                            "them in a file",
                            who, bytes, kMaxCommandBytes));
  return {};
}

// Lists of tasks tell all of them.
Status check_names_in(const TaskSpec& spec, const std::string& who) {
  constexpr size_t kEach = 16, kMost = 1 << 20;
  size_t bytes = 0;
  for (const auto& parent : spec.after) bytes += parent.size() + kEach;
  for (const auto& use : spec.datasets) bytes += use.dataset.size() + kEach;
  if (bytes <= kMost) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: the names of its datasets and of the tasks that it is to run after "
                          "take {} bytes, at most {} are taken: give these shorter names",
                          who, bytes, kMost));
}

Status check_numbers(const TaskSpec& spec, const std::string& who) {
  if (spec.units == 0 || spec.units > kMaxUnits)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: {} units: ask for 1 or more", who, spec.units));
  if (spec.is_elastic() && (spec.max_units < spec.units || spec.max_units > kMaxUnits))
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: elastic from {} to {} units: the most must be no less than the "
                            "least, and at most {}",
                            who, spec.units, spec.max_units, kMaxUnits));
  if (spec.is_elastic() && spec.is_gang() && spec.gang.engine != Engine::kCpu)
    return fail(ErrorCode::kInvalid,
                who + ": ranks on GPUs keep the cores that they have: leave out 'elastic'");
  // Beyond these every figure that is derived from them, such as a node's speed, is nonsense.
  for (const double operations : {spec.float_operations, spec.int_operations})
    if (operations != 0 && !(operations >= 1 && operations <= 1e24))
      return fail(ErrorCode::kInvalid,
                  who + ": the estimated operations must be 0 (not known) or from 1 to 1e24");
  if (spec.time_limit_ms < 0)
    return fail(ErrorCode::kInvalid, who + ": the time limit must not be negative");
  if (spec.swap_room_bytes > kMostSwapRoomBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: asks for {} of room for swapping, at most {} are taken", who,
                            format_bytes(spec.swap_room_bytes), format_bytes(kMostSwapRoomBytes)));
  if (spec.swap_room_bytes % kSwapRoomStepBytes != 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: asks for {} bytes of room for swapping: ask for whole MiB", who,
                            spec.swap_room_bytes));
  return {};
}

Status check_training_goal(const TaskSpec& spec, const std::string& who) {
  const auto& goal = spec.training_goal;
  if (goal == TrainingGoal{}) return {};
  const auto refuse = [&](const char* why) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", who, why));
  };
  constexpr double kLeastWeight = 0.01, kMostWeight = 100;
  constexpr size_t kMostMeasureBytes = 64;  // of what jobs may report
  if (!spec.is_elastic())
    return refuse("a weight, a measure, a goal and a deadline are for an elastic task");
  if (!(goal.weight >= kLeastWeight && goal.weight <= kMostWeight))
    return refuse("the weight must be from 0.01 to 100");
  if (!is_utf8(goal.measure) || goal.measure.size() > kMostMeasureBytes)
    return refuse("the name of the measure must be text of at most 64 bytes");
  if (!std::isfinite(goal.goal)) return refuse("the goal must be a finite number");
  if (goal.deadline_ms < 0) return refuse("the deadline must not be in the past");
  if (goal.deadline_ms > kLongest_ms) return refuse("the deadline must be at most ten years away");
  if (goal.deadline_ms == 0 && goal.goal != 0)
    return refuse("a goal needs the deadline by which it is to be reached");
  return {};
}

Status check_memory_tier(const TaskSpec& spec, const std::string& who) {
  const auto wish = parse_memory_wish(spec.memory_tier);
  if (!wish) return fail(wish.error().code, who + ": " + wish.error().message);
  return {};
}

Status check_datasets(const TaskSpec& spec, const std::string& who, const Catalog& catalog) {
  std::set<std::string> seen;
  for (const auto& use : spec.datasets) {
    if (catalog.is_being_removed(use.dataset))
      return fail(ErrorCode::kNotFound,
                  fmt::format("{}: dataset '{}' is just being removed", who, use.dataset));
    if (!catalog.find(use.dataset))
      return fail(ErrorCode::kNotFound,
                  fmt::format("{}: dataset '{}' does not exist: add it first", who, use.dataset));
    if (!seen.insert(use.dataset).second)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: dataset '{}' is named twice", who, use.dataset));
  }
  return {};
}

constexpr int32_t kMostPriority = 1000;
constexpr uint32_t kMostRanks = 4096;

tl::unexpected<Error> refusal(const std::string& who, std::string why) {
  return fail(ErrorCode::kInvalid, who + ": " + std::move(why));
}

// What it says of itself.
Status check_ranks(const TaskSpec& spec, const std::string& who) {
  const auto refuse = [&](std::string why) { return refusal(who, std::move(why)); };
  const auto& gang = spec.gang;
  if (gang.most_ranks() > kMostRanks)
    return refuse(fmt::format("{} ranks, at most {} are taken", gang.most_ranks(), kMostRanks));
  if (gang.max_ranks > 0 && gang.max_ranks < gang.ranks)
    return refuse(fmt::format("at most {} ranks are less than those it begins with, {}",
                              gang.max_ranks, gang.ranks));
  if ((gang.engine == Engine::kGpu) != (gang.gpus_per_rank > 0))
    return refuse("ranks on the engine gpu have one GPU or more each, others have none");
  const uint32_t least = std::max(gang.ranks_per_node_min, 1u);
  if (gang.ranks_per_node_max > 0 && gang.ranks_per_node_max < least)
    return refuse(fmt::format("at most {} ranks a node are less than the least, {}",
                              gang.ranks_per_node_max, least));
  if (gang.ranks < least)
    return refuse(
        fmt::format("{} ranks are less than the least that a node may get, {}", gang.ranks, least));
  if (gang.estimate_ms < 0 || gang.start_within_ms < 0)
    return refuse("the estimate and the time to start must not be negative");
  if (gang.start_within_ms > kLongest_ms)
    return refuse("the time to start must be at most ten years");
  if (!spec.node.empty())
    return refuse("a gang is not bound to a node: use ranks per node to keep it together");
  for (const auto& use : spec.datasets)
    if (use.write)
      return refuse(
          fmt::format("dataset '{}': the ranks of a gang only read datasets; have a task "
                      "after it write",
                      use.dataset));
  const uint32_t most_each = gang.ranks_per_node_max > 0 ? gang.ranks_per_node_max : kMostRanks;
  if (!can_spread(std::vector(gang.most_ranks(), most_each), gang))
    return refuse(
        fmt::format("{} ranks cannot be spread over nodes with {}", gang.ranks, bounds_text(gang)));
  return {};
}

Status check_gang(const TaskSpec& spec, const std::string& who, const Registry& registry) {
  if (spec.priority < -kMostPriority || spec.priority > kMostPriority)
    return refusal(
        who, fmt::format("the priority must be from {} to {}", -kMostPriority, kMostPriority));
  if (!spec.is_gang()) return {};
  if (auto ranks = check_ranks(spec, who); !ranks) return ranks;
  const auto& gang = spec.gang;
  if (!registry.knows_all_shapes() || registry.summary().known_shapes.empty()) return {};
  const auto capacity = known_capacity(registry, spec);
  if (capacity.holds) return {};
  const auto each =
      fmt::format("{} units{} each", spec.units,
                  gang.gpus_per_rank > 0 ? fmt::format(" and {} GPUs", gang.gpus_per_rank) : "");
  if (capacity.ranks < gang.ranks)
    return refusal(who, fmt::format("all nodes together could run {} of its {} ranks ({})",
                                    capacity.ranks, gang.ranks, each));
  return refusal(who, fmt::format("no set of nodes can have {} ranks ({}) with {}", gang.ranks,
                                  each, bounds_text(gang)));
}

// Against the nodes the cluster knows; one without nodes, or that was just restarted, cannot tell
// yet and lets the task wait.
Status check_fits(const TaskSpec& spec, const std::string& who, const Catalog& catalog,
                  const Registry& registry) {
  if (!spec.node.empty() && !registry.slots().is_known(spec.node))
    return fail(ErrorCode::kNotFound, fmt::format("{}: node '{}' does not exist", who, spec.node));
  NodeShapes shapes = registry.summary().known_shapes;
  if (!spec.node.empty()) {
    shapes = {};
    if (const auto* node = registry.find(spec.node); node && node->facts.units > 0)
      shapes.add(node->facts.resources());
  }
  Resources needed = spec.needs(catalog.data_bytes(spec));
  needed.gpus = 0;  // only ranks have any: check_gang counts them
  if (shapes.empty() || shapes.hold(needed)) return {};
  if (spec.node.empty() && !registry.knows_all_shapes()) return {};
  const Resources most = shapes.largest();
  const auto refused = [&](const std::string& what, const std::string& has) {
    return fail(
        ErrorCode::kInvalid,
        fmt::format("{}: {}, {} has {}", who, what,
                    spec.node.empty() ? "the largest node" : "node '" + spec.node + "'", has));
  };
  if (needed.units > most.units)
    return refused(fmt::format("asks for {} units", needed.units), std::to_string(most.units));
  if (needed.memory_bytes > most.memory_bytes)
    return refused(fmt::format("asks for {} of memory", format_bytes(needed.memory_bytes)),
                   format_bytes(most.memory_bytes));
  if (needed.fast_bytes > most.fast_bytes)
    return refused(fmt::format("its datasets are {}", format_bytes(needed.fast_bytes)),
                   format_bytes(most.fast_bytes) + " of fast memory for datasets");
  if (needed.swap_room_bytes > most.swap_room_bytes)
    return refused(
        fmt::format("asks for {} of room for swapping", format_bytes(needed.swap_room_bytes)),
        most.swap_room_bytes > 0 ? format_bytes(most.swap_room_bytes)
                                 : "none: give it some with [swap] of tierpilotd.toml");
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: asks for {} units, {} of memory, {} of fast memory for datasets and "
                          "{} of room for swapping: there are such nodes for each, but none for "
                          "all together",
                          who, needed.units, format_bytes(needed.memory_bytes),
                          format_bytes(needed.fast_bytes), format_bytes(needed.swap_room_bytes)));
}

Result<Dependencies> resolve_dependencies(const std::vector<TaskSpec>& specs) {
  std::unordered_map<std::string, size_t> by_name;
  for (size_t i = 0; i < specs.size(); ++i)
    if (!specs[i].name.empty() && !by_name.emplace(specs[i].name, i).second)
      return fail(ErrorCode::kInvalid,
                  fmt::format("task '{}': the name is given twice in this submit", specs[i].name));
  Dependencies depends_on(specs.size());
  for (size_t i = 0; i < specs.size(); ++i)
    for (const auto& parent : specs[i].after) {
      const auto found = by_name.find(parent);
      if (found == by_name.end())
        return fail(ErrorCode::kInvalid,
                    fmt::format("{}: it is to run after '{}', which is not in this submit",
                                label(specs[i], i), parent));
      depends_on[i].push_back(found->second);
    }
  for (auto& parents : depends_on) {
    std::sort(parents.begin(), parents.end());
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  }
  return depends_on;
}

// Kahn's algorithm: what cannot be sorted is on or behind a cycle.
Status refuse_cycle(const std::vector<TaskSpec>& specs, const Dependencies& depends_on) {
  std::vector<std::vector<size_t>> children(specs.size());
  std::vector<size_t> missing(specs.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < specs.size(); ++i) {
    missing[i] = depends_on[i].size();
    for (const size_t parent : depends_on[i]) children[parent].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  size_t sorted = 0;
  while (!ready.empty()) {
    const size_t next = ready.back();
    ready.pop_back();
    ++sorted;
    for (const size_t child : children[next])
      if (--missing[child] == 0) ready.push_back(child);
  }
  if (sorted == specs.size()) return {};
  // Walking up missing parents from any unsorted task runs into the cycle.
  size_t at = static_cast<size_t>(
      std::find_if(missing.begin(), missing.end(), [](size_t n) { return n > 0; }) -
      missing.begin());
  std::vector<size_t> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    at = *std::find_if(depends_on[at].begin(), depends_on[at].end(),
                       [&](size_t parent) { return missing[parent] > 0; });
  }
  std::string text = label(specs[at], at);
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    text += " -> " + label(specs[*it], *it);
    if (*it == at) break;
  }
  return fail(ErrorCode::kInvalid, "the dependencies form a cycle: " + text);
}

}  // namespace

Result<Dependencies> admit(const std::vector<TaskSpec>& specs, const Catalog& catalog,
                           const Registry& registry, const std::set<std::string>& leaving) {
  if (specs.empty()) return fail(ErrorCode::kInvalid, "submit: there is no task in it");
  if (specs.size() > kMaxTasksPerSubmit)
    return fail(ErrorCode::kInvalid, fmt::format("submit: {} tasks, at most {} are taken at once",
                                                 specs.size(), kMaxTasksPerSubmit));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (auto ok = check_name(specs[i], i); !ok) return tl::unexpected(ok.error());
    const auto who = label(specs[i], i);
    if (auto ok = check_command(specs[i], who); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_names_in(specs[i], who); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_numbers(specs[i], who); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_training_goal(specs[i], who); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_memory_tier(specs[i], who); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_datasets(specs[i], who, catalog); !ok) return tl::unexpected(ok.error());
    if (leaving.contains(specs[i].node))
      return fail(ErrorCode::kNotFound,
                  fmt::format("{}: node '{}' is just being removed", who, specs[i].node));
    if (auto ok = check_fits(specs[i], who, catalog, registry); !ok)
      return tl::unexpected(ok.error());
    if (auto ok = check_share(specs[i], who, registry); !ok) return tl::unexpected(ok.error());
    if (auto ok = check_gang(specs[i], who, registry); !ok) return tl::unexpected(ok.error());
  }
  uint64_t ranks = 0;
  for (const auto& spec : specs) ranks += spec.gang.most_ranks();
  if (specs.size() + ranks > kMaxTasksPerSubmit)
    return fail(ErrorCode::kInvalid,
                fmt::format("submit: {} tasks and {} ranks of gangs, at most {} are taken at once",
                            specs.size(), ranks, kMaxTasksPerSubmit));
  auto depends_on = resolve_dependencies(specs);
  if (!depends_on) return depends_on;
  if (auto ok = refuse_cycle(specs, *depends_on); !ok) return tl::unexpected(ok.error());
  return depends_on;
}

}  // namespace tierpilot
