#include "policies/published/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "policies/learning/byte_codec.h"
#include "policies/learning/envelope.h"

namespace tierpilot {
namespace {

constexpr EnvelopeKind kKind{"TPLEARN1", 1, "learner checkpoint"};
constexpr uint32_t kNone = UINT32_MAX;

using ObservationPtr = std::shared_ptr<const Observation>;

void put_mask(ByteWriter& out, const SlotMask& mask) {
  constexpr SlotMask kLow64(~uint64_t{0});
  out.put<uint64_t>((mask & kLow64).to_ullong());
  out.put<uint64_t>((mask >> 64 & kLow64).to_ullong());
}

SlotMask get_mask(ByteReader& in) {
  const SlotMask low(in.get<uint64_t>());
  return low | SlotMask(in.get<uint64_t>()) << 64;
}

// Neighbouring experiences share observations: each is written once and referred to by index.
class ObservationTable {
 public:
  uint32_t index_of(const ObservationPtr& seen) {
    if (!seen) return kNone;
    const auto [place, added] = indices_.try_emplace(seen.get(), indices_.size());
    if (added) list_.push_back(seen);
    return place->second;
  }
  void put(ByteWriter& out) const {
    out.put<uint64_t>(list_.size());
    for (const ObservationPtr& seen : list_) {
      out.put_all<float>(seen->values);
      put_mask(out, seen->present);
      put_mask(out, seen->candidates);
      out.put<uint8_t>(seen->exchangeable);
    }
  }

 private:
  std::unordered_map<const Observation*, uint32_t> indices_;
  std::vector<ObservationPtr> list_;
};

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

// Empty when an observation cannot be.
std::vector<ObservationPtr> get_observations(ByteReader& in) {
  std::vector<ObservationPtr> list;
  const size_t count = in.get_count(ObservationLayout::kSize * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    Observation seen;
    seen.values = in.get_all<float>();
    seen.present = get_mask(in);
    seen.candidates = get_mask(in);
    seen.exchangeable = in.get<uint8_t>() != 0;
    if (!in.ok() || seen.values.size() != ObservationLayout::kSize || !all_finite(seen.values))
      return {};
    list.push_back(std::make_shared<const Observation>(std::move(seen)));
  }
  return list;
}

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
  ObservationTable table;
  for (const PublishedExperience& entry : checkpoint.replay) {
    table.index_of(entry.seen);
    table.index_of(entry.next);
  }
  for (const PublishedPending& entry : checkpoint.pending) {
    table.index_of(entry.seen);
    table.index_of(entry.next);
  }
  ByteWriter out;
  put_network(out, checkpoint.network);
  put_progress(out, checkpoint.progress);
  out.put_all<float>(checkpoint.weights);
  table.put(out);
  out.put<uint64_t>(checkpoint.replay.size());
  for (const PublishedExperience& entry : checkpoint.replay) {
    out.put(table.index_of(entry.seen));
    out.put(table.index_of(entry.next));
    out.put(entry.action);
    out.put(entry.reward);
  }
  out.put<uint64_t>(checkpoint.pending.size());
  for (const PublishedPending& entry : checkpoint.pending) {
    out.put(entry.id);
    out.put(table.index_of(entry.seen));
    out.put(table.index_of(entry.next));
    out.put(entry.action);
    out.put<uint8_t>(entry.reward.has_value());
    out.put(entry.reward.value_or(0));
  }
  return out.take();
}

// The observation, action and reward must be possible; `next` may be missing.
bool plausible(const ObservationPtr& seen, uint32_t action, double reward) {
  return seen && action < kSlots && std::isfinite(reward);
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
  const std::vector<ObservationPtr> observations = get_observations(in);
  const auto observation = [&](uint32_t index) {
    return index < observations.size() ? observations[index] : nullptr;
  };

  const size_t replay_count = in.get_count(4 + 4 + 4 + 8);
  for (size_t i = 0; i < replay_count; ++i) {
    PublishedExperience entry;
    entry.seen = observation(in.get<uint32_t>());
    entry.next = observation(in.get<uint32_t>());
    entry.action = in.get<uint32_t>();
    entry.reward = in.get<double>();
    if (!plausible(entry.seen, entry.action, entry.reward) || !entry.next)
      return bad("an experience");
    checkpoint.replay.push_back(std::move(entry));
  }
  const size_t pending_count = in.get_count(8 + 4 + 4 + 4 + 1 + 8);
  for (size_t i = 0; i < pending_count; ++i) {
    PublishedPending entry;
    entry.id = in.get<uint64_t>();
    entry.seen = observation(in.get<uint32_t>());
    entry.next = observation(in.get<uint32_t>());
    entry.action = in.get<uint32_t>();
    const bool rewarded = in.get<uint8_t>() != 0;
    const auto reward = in.get<double>();
    if (!plausible(entry.seen, entry.action, reward)) return bad("a pending experience");
    if (rewarded) entry.reward = reward;
    checkpoint.pending.push_back(std::move(entry));
  }
  if (!in.ok() || !in.at_end()) return bad("the length of its lists");
  return checkpoint;
}

}  // namespace

std::string encode_checkpoint(const PublishedCheckpoint& checkpoint) {
  return seal(kKind, encode_body(checkpoint));
}

Result<PublishedCheckpoint> decode_checkpoint(std::string_view bytes) {
  const auto body = unseal(kKind, bytes);
  if (!body) return tl::unexpected(body.error());
  return decode_body(*body);
}

}  // namespace tierpilot
