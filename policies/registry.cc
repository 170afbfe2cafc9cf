#include "policies/registry.h"

#include <fmt/format.h>

#include <functional>

#include "policies/dqn/dqn_policy.h"
#include "policies/heuristics.h"

namespace tierpilot {
namespace {

struct Entry {
  PolicyInfo info;
  std::function<std::unique_ptr<Policy>(const PolicyContext&)> make;
};

const std::vector<Entry>& registry() {
  static const std::vector<Entry> entries{
      {{"random", "any candidate with the same probability", false},
       [](const PolicyContext& c) { return make_random_policy(c.seed); }},
      {{"round-robin", "the candidates in turn", false},
       [](const PolicyContext&) { return make_round_robin_policy(); }},
      {{"least-loaded", "fewest assigned units per compute unit", false},
       [](const PolicyContext& c) { return make_least_loaded_policy(c.seed); }},
      {{"locality-greedy", "most of the task's bytes in fast, then in slow memory", false},
       [](const PolicyContext& c) { return make_locality_greedy_policy(c.seed); }},
      {{"locality-load", "share of the data at hand less half the load", false},
       [](const PolicyContext& c) { return make_locality_load_policy(c.seed); }},
      {{"dqn", "largest Q value of the shared network, which learns from measured rewards", true},
       [](const PolicyContext& c) { return make_dqn_policy(c.dqn, c.seed, c.weights); }},
  };
  return entries;
}

}  // namespace

const std::vector<PolicyInfo>& registered_policies() {
  static const std::vector<PolicyInfo> infos = [] {
    std::vector<PolicyInfo> list;
    for (const Entry& entry : registry()) list.push_back(entry.info);
    return list;
  }();
  return infos;
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const PolicyContext& context) {
  std::string known;
  for (const Entry& entry : registry()) {
    if (entry.info.name == name) return entry.make(context);
    known += (known.empty() ? "" : ", ") + entry.info.name;
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("policy '{}' does not exist: there are {}", name, known));
}

}  // namespace tierpilot
