#include "policies/dqn/token_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "policies/dqn/weights.h"

namespace tierpilot {
namespace {

using Sight = std::shared_ptr<const TokenSet>;

constexpr uint32_t kNone = UINT32_MAX;

// Neighbouring experiences share sights: each is written once and referred to by index.
class SightTable {
 public:
  uint32_t index_of(const Sight& sight) {
    if (!sight) return kNone;
    const auto [place, added] = indices_.try_emplace(sight.get(), indices_.size());
    if (added) list_.push_back(sight);
    return place->second;
  }
  void put(ByteWriter& out) const {
    out.put<uint64_t>(list_.size());
    for (const Sight& sight : list_) {
      out.put_all<float>(sight->features);
      out.put_all<float>(sight->prior);
      out.put_all<float>(sight->others);
      out.put_all<uint32_t>(sight->nodes);
      out.put(sight->scale_s);
    }
  }

 private:
  std::unordered_map<const TokenSet*, uint32_t> indices_;
  std::vector<Sight> list_;
};

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

bool plausible(const TokenSet& sight) {
  return sight.count() > 0 && sight.prior.size() == sight.count() &&
         sight.others.size() == sight.count() && all_finite(sight.others) &&
         sight.features.size() == sight.count() * kTokenSize && all_finite(sight.features) &&
         all_finite(sight.prior) && std::isfinite(sight.scale_s) && sight.scale_s > 0;
}

// Empty when a sight cannot be.
std::vector<Sight> get_sights(ByteReader& in) {
  std::vector<Sight> list;
  const size_t count = in.get_count(4 * sizeof(uint64_t));
  for (size_t i = 0; i < count; ++i) {
    TokenSet sight;
    sight.features = in.get_all<float>();
    sight.prior = in.get_all<float>();
    sight.others = in.get_all<float>();
    sight.nodes = in.get_all<uint32_t>();
    sight.scale_s = in.get<double>();
    if (!in.ok() || !plausible(sight)) return {};
    list.push_back(std::make_shared<const TokenSet>(std::move(sight)));
  }
  return list;
}

bool plausible(const Sight& seen, uint32_t action, double reward) {
  return seen && action < seen->count() && std::isfinite(reward);
}

}  // namespace

std::string encode_memory(const TokenMemory& memory) {
  SightTable table;
  for (const auto& entry : memory.replay) {
    table.index_of(entry.seen);
    table.index_of(entry.next);
  }
  for (const auto& entry : memory.pending) {
    table.index_of(entry.seen);
    table.index_of(entry.next);
  }
  ByteWriter out;
  out.put<uint64_t>(kTokenSize);
  out.put(memory.features);
  put_progress(out, memory.progress);
  out.put_all<float>(memory.own);
  put_externality(out, memory.others);
  table.put(out);
  out.put<uint64_t>(memory.replay.size());
  for (const auto& entry : memory.replay) {
    out.put(table.index_of(entry.seen));
    out.put(table.index_of(entry.next));
    out.put(entry.action);
    out.put(entry.reward);
  }
  out.put<uint64_t>(memory.pending.size());
  for (const auto& entry : memory.pending) {
    out.put(entry.id);
    out.put(table.index_of(entry.seen));
    out.put(table.index_of(entry.next));
    out.put(entry.action);
    out.put<uint8_t>(entry.reward.has_value());
    out.put(entry.reward.value_or(0));
  }
  put_range(out, memory.trained_on);
  return out.take();
}

Result<TokenMemory> decode_memory(std::string_view bytes) {
  const auto bad = [](std::string_view what) {
    return fail(ErrorCode::kInvalid, fmt::format("{} cannot be", what));
  };
  ByteReader in(bytes);
  if (in.get<uint64_t>() != kTokenSize)
    return fail(ErrorCode::kInvalid, "it learned from other features than this program has");
  TokenMemory memory;
  memory.features = in.get<FeatureMask>();
  memory.progress = get_progress(in);
  if (!is_plausible(memory.progress)) return bad("the training progress");
  memory.own = in.get_all<float>();
  const auto others = get_externality(in);
  if (!others) return tl::unexpected(others.error());
  memory.others = *others;
  const std::vector<Sight> sights = get_sights(in);
  const auto sight = [&](uint32_t index) {
    return index < sights.size() ? sights[index] : nullptr;
  };
  const size_t replay_count = in.get_count(4 + 4 + 4 + 8);
  for (size_t i = 0; i < replay_count; ++i) {
    Experience<TokenSet> entry;
    entry.seen = sight(in.get<uint32_t>());
    entry.next = sight(in.get<uint32_t>());
    entry.action = in.get<uint32_t>();
    entry.reward = in.get<double>();
    if (!plausible(entry.seen, entry.action, entry.reward)) return bad("an experience");
    memory.replay.push_back(std::move(entry));
  }
  const size_t pending_count = in.get_count(8 + 4 + 4 + 4 + 1 + 8);
  for (size_t i = 0; i < pending_count; ++i) {
    PendingExperience<TokenSet> entry;
    entry.id = in.get<uint64_t>();
    entry.seen = sight(in.get<uint32_t>());
    entry.next = sight(in.get<uint32_t>());
    entry.action = in.get<uint32_t>();
    const bool rewarded = in.get<uint8_t>() != 0;
    const auto reward = in.get<double>();
    if (!plausible(entry.seen, entry.action, reward)) return bad("a pending experience");
    if (rewarded) entry.reward = reward;
    memory.pending.push_back(std::move(entry));
  }
  memory.trained_on = get_range(in);
  if (!in.ok() || !in.at_end()) return bad("the length of its lists");
  return memory;
}

}  // namespace tierpilot
