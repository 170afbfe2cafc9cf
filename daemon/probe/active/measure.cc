#include "daemon/probe/active/measure.h"

#include <algorithm>
#include <utility>

#include "base/process/available_memory.h"
#include "daemon/probe/active/classes.h"
#include "daemon/probe/active/interference.h"
#include "daemon/probe/active/session.h"
#include "daemon/probe/active/tier_probe.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::initializer_list<std::string_view> kMoves = {
    figure::kEvict,        figure::kPromote,    figure::kFirstEvict,
    figure::kFirstPromote, figure::kStartEvict, figure::kStartPromote};

void explain_what_was_not_asked(ProbeSession& session, const ProbeOptions& options) {
  const std::string reason = "not asked for";
  if (!options.latency) session.explain_missing({figure::kLatency, figure::kCachedLatency}, reason);
  if (!options.bandwidth)
    session.explain_missing({figure::kRead, figure::kWrite, figure::kCopy}, reason);
  if (!options.eviction) session.explain_missing(kMoves, reason);
}

}  // namespace

Quality TierMeasurement::quality(const std::string& figure) const {
  const auto at = evidence.find(figure);
  return at == evidence.end() ? Quality{}
                              : assess(at->second.spread, at->second.rounds, surroundings);
}

Quality TierMeasurement::quality() const {
  if (evidence.empty()) return {};
  Quality worst;
  double worst_spread = -1;
  for (const auto& [name, seen] : evidence) {
    if (figure::is_of_few(name)) continue;
    auto one = quality(name);
    if (worst_spread >= 0 &&
        std::pair(one.grade, seen.spread) <= std::pair(worst.grade, worst_spread))
      continue;
    worst = {one.grade, name + ": " + one.reason};
    worst_spread = seen.spread;
  }
  return worst;
}

Result<std::vector<TierMeasurement>> measure_tiers(const std::vector<TierSpec>& tiers,
                                                   const ProbeOptions& wanted) {
  if (tiers.empty()) return fail(ErrorCode::kInvalid, "there are no tiers to measure");
  if (wanted.rounds < 1 || wanted.timeout.count() < 1)
    return fail(ErrorCode::kInvalid, "measuring takes at least one round and one millisecond");
  ProbeOptions options = wanted;
  if (!options.node_footprint_bytes)
    options.node_footprint_bytes =
        node_footprint_bytes(tiers, static_cast<uint64_t>(available_memory_bytes().value_or(0)));
  const bool moves = options.eviction && tiers.size() > 1;
  options.latency |= moves;  // neighbours are known by their ranks
  const Interference interference;
  ProbeSession session(tiers);
  explain_what_was_not_asked(session, options);
  for (size_t i = 0; i < tiers.size(); ++i)
    session.ledger(i).explain_missing(
        tiers[i].is_directory() ? figure::kCopy : figure::kCachedLatency,
        tiers[i].is_directory() ? "only nodes have one" : "only directories have one");

  // Evictions come last and keep a third of the time for themselves.
  const auto deadline = SteadyClock::now() + options.timeout;
  const auto enough = options.enough;
  if (moves) options.enough = enough * 2 / 3;
  if (options.latency || options.bandwidth)
    session.run(
        [&](const ObservationSink& sink) { probe_tiers(tiers, options, sink); },
        moves ? deadline - options.timeout / 3 : deadline,
        {figure::kLatency, figure::kCachedLatency, figure::kRead, figure::kWrite, figure::kCopy});
  const auto ranked = rank_tiers(session.measurements());
  for (const auto name : kMoves)
    session.ledger(ranked.back()).explain_missing(name, "no slower tier");
  options.enough = enough / 3;
  if (moves)
    session.run([&](const ObservationSink& sink) { probe_transfers(tiers, ranked, options, sink); },
                deadline, kMoves);

  std::vector<TierMeasurement> result;
  auto measured = session.measurements();
  assign_classes(measured);
  const auto surroundings = interference.surroundings();
  for (const size_t i : ranked) {
    measured[i].surroundings = surroundings;
    result.push_back(std::move(measured[i]));
  }
  return result;
}

}  // namespace tierpilot
