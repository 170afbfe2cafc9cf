// What was learned of a program's steps, as bytes that the next run starts from. Bytes are hostile:
// what is damaged, or was learned under other settings, is refused whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policies/swap/learning/observed_step.h"

namespace tierpilot::swap {

// Of more steps the one that was seen the longest ago is forgotten, of more saves where they are of
// more than a few.
constexpr size_t kMostKnownSteps = 128, kMostKnownSaves = 200'000, kFewKnownSteps = 32;

// A kind of step, known again by its saves, and what leaves in it.
struct KeptStep {
  ObservedStep step{};       // with other_bytes
  std::vector<char> away{};  // by save
  int64_t margin_bytes = 0;
  int explorations = 0;
  size_t widened = 0, next_kind = 0;
  // Not written: whether it ran in this run, and whether memory sufficed for it.
  bool ran = true, fits = true;
};

// What steps that begin with segment `first` compute again.
struct KeptSegments {
  uint64_t first = 0;
  std::vector<std::pair<uint64_t, bool>> again{};  // by place
  bool ran = true;                                 // in this run; not written
};

struct KeptPlans {
  std::vector<KeptStep> steps{};
  std::vector<KeptSegments> segments{};
  std::optional<int64_t> state_room{};  // bytes of states that stay, where that was decided
};

// Not so: something else, which is not to be replaced. Of nothing it may be, and of what is cut off
// or damaged further behind.
bool may_be_plans(std::string_view bytes);
// `settings` tells under what they were learned: another text at reading refuses them.
std::string write_plans(const KeptPlans& plans, std::string_view settings);
Result<KeptPlans> read_plans(std::string_view bytes, std::string_view settings);

}  // namespace tierpilot::swap
