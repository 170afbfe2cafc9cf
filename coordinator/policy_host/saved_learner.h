// Taking over what a learner of an earlier run has saved.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "policies/learning/learner.h"

namespace tierpilot {

std::filesystem::path checkpoint_file(const std::filesystem::path& state_dir,
                                      const std::string& policy);

struct TakenOver {
  bool found = false;  // the learner goes on where it stopped
  std::string origin;  // what its learning once began from
  std::string note;    // why nothing was taken over although there was a file
};

// Makes `state_dir` and restores the learner behind `policy` from its checkpoint, if there is one.
// A checkpoint that is damaged or does not fit is renamed to "<policy>.checkpoint.refused" (with a
// number, if that is there) and noted; a directory or file that cannot be read is an error. With an
// empty `state_dir` there is nothing to take over. A learner that begins does so from `beginning`,
// which is written down beside its checkpoint, unless the disk is full.
Result<TakenOver> take_over_learner(const std::filesystem::path& state_dir,
                                    const std::string& policy, const std::string& beginning,
                                    Learner& learner);

}  // namespace tierpilot
