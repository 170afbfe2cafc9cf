#include "policies/placement/dqn/token_codec.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "policies/learning/finite.h"
#include "policies/placement/dqn/weights.h"

namespace tierpilot {
namespace {

bool plausible(const TokenSet& sight) {
  constexpr size_t kMost = 1024;  // as dqn.tokens
  constexpr double kShortest_s = 1e-6;
  return sight.count() > 0 && sight.count() <= kMost && sight.prior.size() == sight.count() &&
         sight.others.size() == sight.count() && all_finite(sight.others) &&
         sight.features.size() == sight.count() * kTokenSize && all_finite(sight.features) &&
         all_finite(sight.prior) && std::isfinite(sight.scale_s) && sight.scale_s >= kShortest_s;
}

void put_sight(ByteWriter& out, const TokenSet& sight) {
  out.put_all<float>(sight.features);
  out.put_all<float>(sight.prior);
  out.put_all<float>(sight.others);
  out.put_all<uint32_t>(sight.nodes);
  out.put(sight.scale_s);
}

std::shared_ptr<const TokenSet> get_sight(ByteReader& in) {
  auto sight = std::make_shared<TokenSet>();
  sight->features = in.get_all<float>();
  sight->prior = in.get_all<float>();
  sight->others = in.get_all<float>();
  sight->nodes = in.get_all<uint32_t>();
  sight->scale_s = in.get<double>();
  return plausible(*sight) ? sight : nullptr;
}

constexpr SightRules<TokenSet> kRules{
    .least_bytes = 4 * sizeof(uint64_t) + sizeof(double),
    .get = get_sight,
    .has_action = [](const TokenSet& sight, uint32_t action) { return action < sight.count(); }};

}  // namespace

std::string encode_memory(const TokenMemory& memory) {
  ByteWriter out;
  out.put<uint64_t>(kTokenSize);
  out.put(memory.features);
  put_progress(out, memory.progress);
  out.put_all<float>(memory.own);
  put_externality(out, memory.others);
  put_experiences(out, memory.experiences, put_sight);
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
  auto experiences = get_experiences(in, kRules);
  if (!experiences) return tl::unexpected(experiences.error());
  memory.experiences = std::move(*experiences);
  memory.trained_on = get_range(in);
  if (!in.ok() || !in.at_end()) return bad("the length of its lists");
  return memory;
}

}  // namespace tierpilot
