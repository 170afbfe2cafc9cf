// Gangs on two nodes under the guard, with policies made for tests. One unit of node "b" has failed
// often, so that the heuristic keeps away from it, and whoever does the opposite takes it first.
#pragma once

#include <stdexcept>

#include "coordinator/store/records.h"
#include "gang_fixture.h"
#include "policies/gang/placement/candidates.h"

namespace tierpilot::testing {

class Answering : public gang::Placer {
 public:
  using Function = std::function<gang::Units(const gang::PlacementState&, const gang::Job&)>;
  explicit Answering(Function function) : function_(std::move(function)) {}
  gang::Units place(const gang::PlacementState& state, const gang::Job& job) override {
    return function_(state, job);
  }

 private:
  Function function_;
};

inline gang::PlacerModule learned_module(const char* name, Answering::Function function) {
  gang::PlacerModule module{{{name, "made for a test"}, [function](const gang::PlacerOrigin&) {
                               return std::make_unique<Answering>(function);
                             }}};
  module.learned = true;
  return module;
}

// The units that fail most.
inline gang::Units unsoundest(const gang::PlacementState& state, const gang::Job& job) {
  auto units = gang::free_units(state);
  std::stable_sort(units.begin(), units.end(),
                   [&](uint32_t a, uint32_t b) { return state.per_h[a] > state.per_h[b]; });
  units.resize(job.units);
  return units;
}

inline const gang::PlacerModules& test_policies() {
  static const gang::PlacerModules kModules(
      "gang policy",
      {*gang::placers().find(gang::kGangHeuristic), *gang::placers().find("first-fit"),
       learned_module("unsoundest", unsoundest),
       learned_module("none", [](const auto&, const auto&) { return gang::Units{}; }),
       learned_module("same",
                      [](const auto& state, const auto& job) {
                        return gang::Units(job.units, gang::free_units(state).front());
                      }),
       learned_module("busy",
                      [](const auto& state, const auto& job) {
                        gang::Units units(job.units, UINT32_MAX);
                        for (uint32_t unit = 0; unit < state.free.size(); ++unit)
                          if (!state.free[unit]) units.front() = unit;
                        return units;
                      }),
       learned_module("throwing", [](const auto&, const auto&) -> gang::Units {
         throw std::runtime_error("no idea");
       })});
  return kModules;
}

class GuardedGangs : public Gangs {
 protected:
  static OversightSettings without_control() {
    OversightSettings settings;
    settings.guard.control_share = 0;
    return settings;
  }
  // As after a start with this in the configuration.
  void begin(const std::string& policy, PolicyMode mode, const OversightSettings& settings) {
    settings_.gang_policies = &test_policies();
    settings_.gang_policy = policy;
    settings_.gang_mode = mode;
    settings_.quarantine_failures = 0;
    again();
    ASSERT_TRUE(gangs_->policies().begin(settings));
    nodes_["a"] = join("a");
    nodes_["b"] = join("b");
    for (int i = 0; i < 9; ++i) state_->units.failed({clock_.wall_ms(), kBad, "signalled 9", 0});
  }
  uint64_t submit_and_place(uint32_t ranks = 1, uint32_t restarts = 0) {
    const auto id = submit_gang(ranks, restarts);
    place();
    return id;
  }
  DecisionRecord decision(uint64_t id) {
    const auto decisions = records::decisions(store_->reader(), id);
    return decisions && !decisions->empty() ? decisions->back() : DecisionRecord{};
  }
  bool has_bad_unit(uint64_t id) {
    const auto& link = *nodes_.at(rank(id, 0).node);
    return rank(id, 0).node == "b" && link.assignments.back().rank->place.cpu_units.front() == 0;
  }
  Oversight& oversight() { return gangs_->policies().oversight(); }
  const Guard& guard(const std::string& policy) { return *oversight().guard("gang/" + policy); }
  MeanInterval measured(const std::string& policy) {
    return oversight().measured("gang/" + policy)[GangPolicies::kGoodput];
  }

  static constexpr const char* kBad = "b/cpu/0";
  std::map<std::string, std::shared_ptr<FakeNode>> nodes_;
};

}  // namespace tierpilot::testing
