// Taking over what a learner of an earlier run has saved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/dqn/pending.h"
#include "policies/dqn/trainer.h"

namespace tierpilot {

struct SavedLearner {
  std::vector<PendingExperience> pending;
  uint64_t decisions = 0;
  uint64_t experiences = 0;
  std::string note;  // why nothing was taken over although there was a file
};

std::filesystem::path checkpoint_file(const std::filesystem::path& state_dir);

// Makes `state_dir` and restores `trainer` from its checkpoint, if there is one. A checkpoint that
// is damaged or does not fit is renamed to "learner.checkpoint.refused" (with a number, if that is
// there) and noted; a directory or file that cannot be read is an error. With an empty `state_dir`
// there is nothing to take over.
Result<SavedLearner> take_over_learner(const std::filesystem::path& state_dir, Trainer& trainer);

}  // namespace tierpilot
