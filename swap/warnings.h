// What a program should be told of its swapping, each text once.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace tierpilot::swap {

// From any thread.
class Warnings {
 public:
  // `plans_refused`: why kept plans are not used; empty: they are, or there are none. `of_tiers`:
  // what is wrong with them.
  Warnings(std::string plans_refused, std::string of_tiers)
      : plans_refused_(std::move(plans_refused)), of_tiers_(std::move(of_tiers)) {}

  // Empty: nothing, or nothing new. `budget_bytes` is less than was wanted where the device was
  // found to have no more. `least_bytes` is what the last step needs at least. It counts the second
  // time: what a first step brings into being is thought to go on growing.
  // `refusal`: why what was to leave found no room in any tier, while steps take more than the
  // budget; what they need at least is not known then.
  std::string next(int64_t wanted_bytes, int64_t budget_bytes, int64_t least_bytes,
                   const std::string& refusal);

 private:
  std::mutex mutex_;
  std::string plans_refused_, of_tiers_;  // empty once they are said
  int64_t lowered_said_bytes_ = 0;
  int too_small_ = 0;  // times in a row that the budget was
  bool too_small_said_ = false, refusal_said_ = false;
};

}  // namespace tierpilot::swap
