#include "policies/placement/published/checkpoint.h"

#include <fmt/format.h>

#include "policies/learning/envelope.h"
#include "policies/learning/finite.h"

namespace tierpilot {
namespace {

constexpr EnvelopeKind kCheckpointKind{"TPLEARN1", 1, "learner checkpoint"};

void put_mask(ByteWriter& out, const SlotMask& mask) {
  constexpr SlotMask kLow64(~uint64_t{0});
  out.put<uint64_t>((mask & kLow64).to_ullong());
  out.put<uint64_t>((mask >> 64 & kLow64).to_ullong());
}

SlotMask get_mask(ByteReader& in) {
  const SlotMask low(in.get<uint64_t>());
  return low | SlotMask(in.get<uint64_t>()) << 64;
}

void put_observation(ByteWriter& out, const Observation& seen) {
  out.put_all<float>(seen.values);
  put_mask(out, seen.present);
  put_mask(out, seen.candidates);
  out.put<uint8_t>(seen.exchangeable);
}

std::shared_ptr<const Observation> get_observation(ByteReader& in) {
  auto seen = std::make_shared<Observation>();
  seen->values = in.get_all<float>();
  seen->present = get_mask(in);
  seen->candidates = get_mask(in);
  seen->exchangeable = in.get<uint8_t>() != 0;
  const bool plausible =
      seen->values.size() == ObservationLayout::kSize && all_finite(seen->values);
  return plausible ? seen : nullptr;
}

constexpr SightRules<Observation> kRules{
    .least_bytes = ObservationLayout::kSize * sizeof(float),
    .get = get_observation,
    .has_action = [](const Observation&, uint32_t action) { return action < kSlots; },
    .needs_next = true};

void put_network(ByteWriter& out, const NetworkSettings& network) {
  out.put(static_cast<int32_t>(network.tokens));
  for (int64_t value : {network.width, network.layers, network.heads, network.feed_forward})
    out.put(value);
}

NetworkSettings get_network(ByteReader& in) {
  NetworkSettings network;
  network.tokens = static_cast<InputTokens>(in.get<int32_t>());
  network.width = in.get<int64_t>();
  network.layers = in.get<int64_t>();
  network.heads = in.get<int64_t>();
  network.feed_forward = in.get<int64_t>();
  return network;
}

std::string encode_body(const PublishedCheckpoint& checkpoint) {
  ByteWriter out;
  put_network(out, checkpoint.network);
  put_progress(out, checkpoint.progress);
  out.put_all<float>(checkpoint.weights);
  put_experiences(out, checkpoint.experiences, put_observation);
  return out.take();
}

Result<PublishedCheckpoint> decode_body(std::string_view body) {
  const auto bad = [](std::string_view what) {
    return fail(ErrorCode::kInvalid, fmt::format("{} cannot be", what));
  };
  ByteReader in(body);
  PublishedCheckpoint checkpoint;
  checkpoint.network = get_network(in);
  checkpoint.progress = get_progress(in);
  if (!is_plausible(checkpoint.progress)) return bad("the training progress");
  checkpoint.weights = in.get_all<float>();
  if (!in.ok() || !all_finite(checkpoint.weights)) return bad("the weights");
  auto experiences = get_experiences(in, kRules);
  if (!experiences) return tl::unexpected(experiences.error());
  checkpoint.experiences = std::move(*experiences);
  if (!in.ok() || !in.at_end()) return bad("the length of its lists");
  return checkpoint;
}

}  // namespace

std::string encode_checkpoint(const PublishedCheckpoint& checkpoint) {
  return seal(kCheckpointKind, encode_body(checkpoint));
}

Result<PublishedCheckpoint> decode_checkpoint(std::string_view bytes) {
  const auto body = unseal(kCheckpointKind, bytes);
  if (!body) return tl::unexpected(body.error());
  return decode_body(*body);
}

}  // namespace tierpilot
