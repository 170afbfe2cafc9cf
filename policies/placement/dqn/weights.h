// What the dqn decides by, and the file it is shipped in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "policies/learning/provenance.h"
#include "policies/placement/dqn/feature_range.h"
#include "policies/placement/dqn/token_net.h"
#include "policies/placement/dqn/tokens.h"

namespace tierpilot {

// The value of a token, in units of TokenSet::scale_s and negated: what the estimate says, plus
// what `own` has learned that a task really takes there, plus what it costs the tasks after it.
struct DqnWeights {
  TokenNet own;
  ExternalityWeights others = kNoExternality;
  uint64_t version = 1;
  FeatureRange trained_on;
};

struct WeightsFile {
  DqnWeights weights;
  FeatureMask features = kAllFeatures;
  Provenance provenance;
};

class ByteWriter;
class ByteReader;
void put_range(ByteWriter& out, const FeatureRange& range);
// Unknown where the bytes hold none of this program's features.
FeatureRange get_range(ByteReader& in);
void put_externality(ByteWriter& out, const ExternalityWeights& weights);
// kInvalid when the terms are not this program's or a weight is not finite.
Result<ExternalityWeights> get_externality(ByteReader& in);

std::string encode_weights(const WeightsFile& file);
// kInvalid says why they cannot be used: damaged, another format, other features (which), another
// size.
Result<WeightsFile> decode_weights(std::string_view bytes);

Status save_weights(const std::filesystem::path& path, const WeightsFile& file);
// As decode_weights, with the file's name; kNotFound: there is none.
Result<WeightsFile> load_weights(const std::filesystem::path& path);

}  // namespace tierpilot
