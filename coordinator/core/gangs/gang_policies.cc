#include "coordinator/core/gangs/gang_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "policies/gang/placement/goodput.h"

namespace tierpilot {
namespace {

std::vector<uint32_t> all_units(const gang::RankPlaces& places) {
  std::vector<uint32_t> units;
  for (const auto& rank : places.units) units.insert(units.end(), rank.begin(), rank.end());
  std::sort(units.begin(), units.end());
  return units;
}

}  // namespace

GangPolicies::GangPolicies(ClusterState& state)
    : state_(state), oversight_(state.store, state.clock), active_(state.settings.gang_policy) {}

Status GangPolicies::begin(OversightSettings shared) {
  shared.measures = {{.name = gang::kGoodput,
                      .low = gang::kLeastGoodput,
                      .high = gang::kMostGoodput,
                      .larger_is_better = true}};
  shared.mode = state_.settings.gang_mode;
  std::map<std::string, std::string> learned;
  for (const auto& module : modules())
    if (module.learned) learned[full_name(module.info.name)] = gang::kGoodput;
  return oversight_.begin(std::move(shared), learned);
}

Status GangPolicies::use(const std::string& name) {
  if (auto made = placer(name, 1); !made) return tl::unexpected(made.error());
  active_ = name;
  return {};
}

Result<std::shared_ptr<gang::Placer>> GangPolicies::placer(const std::string& name, uint64_t seed) {
  if (const auto known = made_.find(name); known != made_.end()) return known->second;
  const auto module = modules().get(name);
  if (!module) return tl::unexpected(module.error());
  auto made = (*module)->make({.seed = seed, .weights = state_.settings.gang_weights});
  if (!made) return tl::unexpected(made.error());
  std::shared_ptr<gang::Placer> placer = std::move(*made);
  if (!(*module)->draws) made_[name] = placer;
  return placer;
}

GangPolicies::Answer GangPolicies::ask(const std::string& name, const GangView& view,
                                       uint64_t seed) {
  const auto failed = [&](const std::string& why, DecisionFault fault) -> Answer {
    return {fail(ErrorCode::kInvalid, fmt::format("policy '{}': {}", full_name(name), why)), fault};
  };
  const auto made = placer(name, seed);
  if (!made) return failed(made.error().message, DecisionFault::kNoWeights);
  try {
    auto places = gang::place_ranks(view.state, view.job, view.shape, **made);
    if (!places && places.error().code != ErrorCode::kUnavailable)
      return failed(places.error().message, DecisionFault::kNoCandidate);
    return {std::move(places)};
  } catch (const std::exception& e) {
    return failed(e.what(), DecisionFault::kFailed);
  }
}

std::string GangPolicies::why_not_asked(const Oversight::Turn& turn) const {
  if (turn.ticket.arm == Arm::kControl) return "a control decision, to compare with";
  return fmt::format("policy '{}' is deposed: {}", turn.policy,
                     oversight_.guard(turn.policy)->memory().why);
}

void GangPolicies::weigh(GangChoice& choice, gang::RankPlaces wanted) const {
  const auto& turn = choice.turn;
  const double longer = wanted.expected_h / choice.heuristic.expected_h - 1;
  const bool acts = turn.ticket.arm == Arm::kPolicy;
  const bool follows =
      acts && (turn.mode == PolicyMode::kEnforce || longer <= oversight_.settings().advice_band);
  if (follows) {
    choice.places = std::move(wanted);
    return;
  }
  choice.proposed = std::move(wanted);
  if (acts)
    choice.fallback = fmt::format(
        "advice: the heuristic expects {:.0f} % more hours of the policy's "
        "choice",
        longer * 100);
  else if (turn.mode == PolicyMode::kShadow)
    choice.fallback = fmt::format("policy '{}' is in shadow", turn.policy);
  else
    choice.fallback = why_not_asked(turn);
}

Result<GangChoice> GangPolicies::choose(const GangView& view, uint64_t seed) {
  auto own = ask(gang::kGangHeuristic, view, seed);
  if (!own.places) return tl::unexpected(own.places.error());
  GangChoice choice{.turn = oversight_.next(full_name(active_)),
                    .places = *own.places,
                    .heuristic = *own.places,
                    .proposed = {},
                    .fallback = {}};
  if (!choice.turn.asks()) {
    choice.fallback = why_not_asked(choice.turn);
    return choice;
  }
  auto answer = ask(active_, view, seed);
  oversight_.answered(choice.turn, answer.fault);
  if (!answer.places) {
    choice.fallback = answer.places.error().message;
    if (answer.fault != DecisionFault::kNone) state_.scores.fell_back(choice.turn.policy);
    return choice;
  }
  const bool differs = all_units(*answer.places) != all_units(choice.heuristic);
  const bool decides =
      choice.turn.ticket.arm == Arm::kPolicy && choice.turn.mode == PolicyMode::kEnforce;
  weigh(choice, std::move(*answer.places));
  if (!decides) oversight_.compared(choice.turn, differs, choice.fallback.empty());
  return choice;
}

}  // namespace tierpilot
