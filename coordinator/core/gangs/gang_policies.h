// Who decides which units gangs get: the policies, the one that is used, and the guard over those
// that learned. Event loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/oversight.h"
#include "coordinator/core/gangs/gang_view.h"

namespace tierpilot {

// One decision, and what else could have been.
struct GangChoice {
  Oversight::Turn turn;
  gang::RankPlaces places;
  gang::RankPlaces heuristic;                // what the heuristic would have taken
  std::optional<gang::RankPlaces> proposed;  // by the policy, where it was asked and did not get it
  std::string fallback;  // why the heuristic decided in its place; empty: it did not
};

class GangPolicies {
 public:
  static constexpr size_t kGoodput = 0;  // its place among the measures

  explicit GangPolicies(ClusterState& state);

  // Takes up modes and standings from the store. Of the settings, guard and advice's band count.
  Status begin(OversightSettings shared);

  const gang::PlacerModules& modules() const { return *state_.settings.gang_policies; }
  const std::string& active() const { return active_; }
  // Until the next start. kNotFound lists the names; or why its weights cannot be used.
  Status use(const std::string& name);
  // As decisions, standings and events name it, which tells it from policies of other kinds.
  static std::string full_name(const std::string& name) { return "gang/" + name; }
  Oversight& oversight() { return oversight_; }
  const Oversight& oversight() const { return oversight_; }

  // kUnavailable: not now, see gang::place_ranks(). An answer that cannot be used, or an exception,
  // counts against the policy, and the heuristic decides. `seed`: of policies that draw.
  Result<GangChoice> choose(const GangView& view, uint64_t seed);

 private:
  struct Answer {
    Result<gang::RankPlaces> places;
    DecisionFault fault = DecisionFault::kNone;
  };

  Result<std::shared_ptr<gang::Placer>> placer(const std::string& name, uint64_t seed);
  Answer ask(const std::string& name, const GangView& view, uint64_t seed);
  // What the policy wants, as its mode and standing have it.
  void weigh(GangChoice& choice, gang::RankPlaces wanted) const;
  std::string why_not_asked(const Oversight::Turn& turn) const;

  ClusterState& state_;
  Oversight oversight_;
  std::string active_;
  std::map<std::string, std::shared_ptr<gang::Placer>> made_;  // those that do not draw
};

}  // namespace tierpilot
