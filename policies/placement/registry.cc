#include "policies/placement/registry.h"

#include "policies/placement/dqn/module.h"
#include "policies/placement/earliest_finish.h"
#include "policies/placement/heuristics.h"
#include "policies/placement/published/module.h"

namespace tierpilot {
namespace {

using Make = std::unique_ptr<Policy> (*)(uint64_t seed);

PlacementModule heuristic(const char* name, const char* summary, Make make, bool holds = false) {
  return {{{name, summary}, [make](uint64_t seed) { return make(seed); }}, holds};
}

}  // namespace

PlacementModules placement_modules() {
  return {
      "policy",
      {heuristic("random", "any candidate with the same probability", make_random_policy),
       heuristic("round-robin", "the candidates in turn",
                 [](uint64_t) { return make_round_robin_policy(); }),
       heuristic("least-loaded", "fewest assigned units per compute unit",
                 make_least_loaded_policy),
       heuristic("locality-greedy", "most of the task's bytes in fast, then in slow memory",
                 make_locality_greedy_policy),
       heuristic("locality-load", "share of the data at hand less half the load",
                 make_locality_load_policy),
       heuristic("earliest-finish", "earliest estimated end: wait, service of the data, run",
                 make_earliest_finish_policy),
       heuristic("least-cost",
                 "earliest estimated end, and the delay of others, as in M/G/1 queues",
                 make_least_cost_policy),
       heuristic("delay-locality", "as locality-greedy, but waits for a full node that has more",
                 make_delay_locality_policy, true),
       heuristic("delay-finish",
                 "earliest estimated end, data counted twice; may wait for a full node",
                 make_delay_finish_policy, true),
       dqn_module(), published_module()}};
}

PlacementModules read_placement_modules(
    ConfigReader& reader,
    const std::function<std::filesystem::path(const std::string& file)>& installed) {
  auto modules = placement_modules();
  for (const PlacementModule& module : modules)
    if (module.learning) {
      const auto weights = module.learning->traits().weights_file;
      module.learning->read(reader.section(module.info.name),
                            weights.empty() ? std::filesystem::path() : installed(weights));
    }
  return modules;
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, uint64_t seed) {
  return placement_modules().make(name, seed);
}

}  // namespace tierpilot
