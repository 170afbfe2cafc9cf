#include "policies/placement/dqn/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policies/learning/byte_codec.h"
#include "policies/learning/envelope.h"
#include "policies/learning/saved_bytes.h"

namespace tierpilot {
namespace {

constexpr EnvelopeKind kKind{"TPDQNWT1", 2, "dqn weights file"};

// The first feature that is not the same, or nothing.
std::string difference(const std::vector<std::string>& names) {
  for (size_t i = 0; i < std::max(names.size(), kTokenSize); ++i) {
    const std::string theirs = i < names.size() ? fmt::format("'{}'", names[i]) : "nothing";
    const std::string ours =
        i < kTokenSize ? fmt::format("'{}'", kTokenFeatures[i].name) : "nothing";
    if (theirs != ours)
      return fmt::format("it was trained on other features: number {} is {}, this program has {}",
                         i + 1, theirs, ours);
  }
  return {};
}

}  // namespace

void put_range(ByteWriter& out, const FeatureRange& range) {
  out.put_all<float>(range.low);
  out.put_all<float>(range.high);
}

FeatureRange get_range(ByteReader& in) {
  FeatureRange range;
  for (auto* bounds : {&range.low, &range.high}) {
    const auto read = in.get_all<float>();
    if (read.size() == bounds->size()) std::copy(read.begin(), read.end(), bounds->begin());
  }
  return range;
}

void put_externality(ByteWriter& out, const ExternalityWeights& weights) {
  for (const ExternalityTerm& term : kExternalityTerms) out.put_text(term.name);
  out.put_all<double>(weights);
}

Result<ExternalityWeights> get_externality(ByteReader& in) {
  for (const ExternalityTerm& term : kExternalityTerms)
    if (const std::string name = in.get_text(); name != term.name)
      return fail(
          ErrorCode::kInvalid,
          fmt::format("it weighs '{}' of what a task costs others where this program has '{}'",
                      name, term.name));
  const auto read = in.get_all<double>();
  ExternalityWeights weights{};
  if (read.size() != weights.size() ||
      !std::all_of(read.begin(), read.end(), [](double w) { return std::isfinite(w); }))
    return fail(ErrorCode::kInvalid, "the weights of what a task costs others cannot be");
  std::copy(read.begin(), read.end(), weights.begin());
  return weights;
}

std::string encode_weights(const WeightsFile& file) {
  ByteWriter out;
  out.put<uint64_t>(kTokenSize);
  for (const FeatureInfo& feature : kTokenFeatures) out.put_text(feature.name);
  out.put(file.features);
  out.put(file.weights.version);
  out.put_all<float>(file.weights.own.weights());
  put_externality(out, file.weights.others);
  out.put_text(file.provenance.command);
  out.put_text(file.provenance.config_digest);
  out.put(file.provenance.seed);
  out.put_text(file.provenance.program_version);
  out.put_text(file.provenance.evaluation);
  put_range(out, file.weights.trained_on);
  return seal(kKind, out.take());
}

Result<WeightsFile> decode_weights(std::string_view bytes) {
  const auto body = unseal(kKind, bytes);
  if (!body) return tl::unexpected(body.error());
  ByteReader in(*body);
  std::vector<std::string> names(in.get_count(sizeof(uint64_t)));
  for (std::string& name : names) name = in.get_text();
  if (const std::string why = difference(names); in.ok() && !why.empty())
    return fail(ErrorCode::kInvalid, why);
  WeightsFile file;
  file.features = in.get<FeatureMask>();
  file.weights.version = in.get<uint64_t>();
  if (Status status = file.weights.own.set_weights(in.get_all<float>()); in.ok() && !status)
    return tl::unexpected(status.error());
  const auto others = get_externality(in);
  if (in.ok() && !others) return tl::unexpected(others.error());
  if (others) file.weights.others = *others;
  file.provenance.command = in.get_text();
  file.provenance.config_digest = in.get_text();
  file.provenance.seed = in.get<uint64_t>();
  file.provenance.program_version = in.get_text();
  file.provenance.evaluation = in.get_text();
  file.weights.trained_on = get_range(in);
  if (!in.ok() || !in.at_end())
    return fail(ErrorCode::kInvalid, "the length of its lists cannot be");
  return file;
}

Status save_weights(const std::filesystem::path& path, const WeightsFile& file) {
  return save_bytes(path, encode_weights(file), 0644);  // a coordinator is another user
}

Result<WeightsFile> load_weights(const std::filesystem::path& path) {
  const auto bytes = load_bytes(path);
  if (!bytes) return fail(bytes.error().code, "dqn weights " + bytes.error().message);
  auto file = decode_weights(*bytes);
  if (!file)
    return fail(file.error().code,
                fmt::format("dqn weights '{}': {}", path.string(), file.error().message));
  return file;
}

}  // namespace tierpilot
