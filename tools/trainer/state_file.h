// What a training needs to go on exactly where it was, in one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot::trainer {

struct TrainingState {
  uint64_t step = 0;  // this many have been done
  std::vector<float> weights, velocity;
  bool operator==(const TrainingState&) const = default;
};

// `training`: what must be alike for the state to be of use, in words. A reader sees the old file
// or the new one, never a part.
Status save_state(const std::filesystem::path& file, const std::string& training,
                  const TrainingState& state);
// kInvalid: it is of another training, or damaged.
Result<TrainingState> load_state(const std::filesystem::path& file, const std::string& training,
                                 size_t weights);

}  // namespace tierpilot::trainer
