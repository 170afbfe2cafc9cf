// Which saved storages of a step leave the device: the rule of a library that can copy and cannot
// recompute, its rivals, and no rule.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "policies/swap/learning/observed_step.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/outcome.h"

namespace tierpilot::swap {

struct ChoiceRule {
  std::string_view name;
  std::string_view says;
};
// none, swap-all, vdnn, capuchin, q-published, checkpoint, swap.
std::span<const ChoiceRule> choice_rules();

struct Choice {
  std::vector<char> away{};  // by save
  // What a replay of it says: nothing where it does not fit, or the rule asks for none.
  std::optional<Outcome> foretold{};
  // Its time, and a little for copies that run beside.
  double cost_ns = 0;
};

// `rule` has to be one of choice_rules(). `limits.recompute` is taken for false.
Choice choose(std::string_view rule, const ObservedStep& step, const Limits& limits);

// What a replay says of a choice.
Outcome foretell(const ObservedStep& step, const std::vector<char>& away, const Limits& limits);

}  // namespace tierpilot::swap
