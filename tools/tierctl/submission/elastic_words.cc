#include "tools/tierctl/submission/elastic_words.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/tierctl/submission/range.h"

namespace tierpilot::tierctl {
namespace {

constexpr uint32_t kMostElasticUnits = 65'536;

Status parse_units(std::string_view words, TaskSpec& task) {
  const auto range = parse_range(words);
  if (!range || range->first == 0 || range->second == 0 || range->second > kMostElasticUnits)
    return fail(ErrorCode::kInvalid,
                fmt::format("elastic: '{}' are no units: write MIN:MAX, from 1 to {}", words,
                            kMostElasticUnits));
  std::tie(task.units, task.max_units) = *range;
  return {};
}

Status parse_measure(std::string_view words, TrainingGoal& goal) {
  const size_t colon = words.rfind(':');
  const auto direction = colon == words.npos ? "down" : words.substr(colon + 1);
  goal.measure = words.substr(0, colon);
  goal.rises = direction == "up";
  if (goal.measure.empty() || (direction != "up" && direction != "down"))
    return fail(ErrorCode::kInvalid,
                fmt::format("measure: '{}' names none: write NAME, NAME:down or NAME:up", words));
  return {};
}

}  // namespace

Status apply(const ElasticWords& words, TaskSpec& task) {
  const auto wrong = [](const char* why) { return fail(ErrorCode::kInvalid, why); };
  if (words.range.empty()) {
    if (words.measure.empty() && words.deadline_ms == 0 && !words.weight && !words.goal) return {};
    return wrong("a weight, a measure, a goal and a deadline are for an elastic task");
  }
  if (task.is_gang() && task.gang.engine != Engine::kCpu)
    return wrong("elastic: ranks on GPUs keep the cores that they have");
  if (task.is_gang() && task.units != 1)
    return wrong("elastic: says the units of each rank: leave out units per rank");
  if (auto parsed = parse_units(words.range, task); !parsed) return parsed;
  auto& goal = task.training_goal;
  if (!words.measure.empty())
    if (auto parsed = parse_measure(words.measure, goal); !parsed) return parsed;
  if (words.goal.has_value() != (words.deadline_ms > 0))
    return wrong("a goal needs its deadline, and a deadline its goal");
  goal.weight = words.weight.value_or(1);
  goal.goal = words.goal.value_or(0);
  goal.deadline_ms = words.deadline_ms;
  return {};
}

}  // namespace tierpilot::tierctl
