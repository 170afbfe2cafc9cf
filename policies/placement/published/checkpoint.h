// What a learner must not lose over a restart, as one file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/learning/experience_codec.h"
#include "policies/learning/progress.h"
#include "policies/placement/published/experience.h"
#include "policies/placement/published/settings.h"

namespace tierpilot {

struct PublishedCheckpoint {
  NetworkSettings network;
  std::vector<float> weights;
  LearnerProgress progress;
  Experiences<Observation> experiences;
};

// The optimizer's moments are left out: they settle again within some tens of batches and would
// triple the file.
std::string encode_checkpoint(const PublishedCheckpoint& checkpoint);
// kInvalid says what is wrong: no checkpoint, another version, cut short, checksum, bad content.
Result<PublishedCheckpoint> decode_checkpoint(std::string_view bytes);

}  // namespace tierpilot
