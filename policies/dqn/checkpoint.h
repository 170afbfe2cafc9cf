// What a learner must not lose over a restart, as one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/dqn/pending.h"
#include "policies/dqn/replay.h"
#include "policies/dqn/settings.h"

namespace tierpilot {

struct LearnerProgress {
  uint64_t decisions = 0;
  uint64_t experiences = 0;
  uint64_t batches = 0;
  uint64_t weights_version = 1;
  double credit_batches = 0;  // see DqnSettings::batches_per_experience
  double loss = 0;
};

struct Checkpoint {
  NetworkSettings network;
  std::vector<float> weights;
  LearnerProgress progress;
  std::vector<Experience> replay;
  std::vector<PendingExperience> pending;
};

// The optimizer's moments are left out: they settle again within some tens of batches and would
// triple the file.
std::string encode_checkpoint(const Checkpoint& checkpoint);
// kInvalid says what is wrong: no checkpoint, another version, cut short, checksum, bad content.
Result<Checkpoint> decode_checkpoint(std::string_view bytes);

// Replaces the file atomically: a crash leaves the old one or the new one.
Status save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);
// kNotFound: there is no such file.
Result<Checkpoint> load_checkpoint(const std::filesystem::path& file);

}  // namespace tierpilot
