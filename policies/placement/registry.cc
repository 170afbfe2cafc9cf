#include "policies/placement/registry.h"

#include <fmt/format.h>

#include <functional>

#include "policies/placement/dqn/dqn_learner.h"
#include "policies/placement/dqn/dqn_policy.h"
#include "policies/placement/earliest_finish.h"
#include "policies/placement/heuristics.h"
#include "policies/placement/published/published_learner.h"
#include "policies/placement/published/published_policy.h"

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
      {{"earliest-finish", "earliest estimated end: wait, service of the data, run", false},
       [](const PolicyContext& c) { return make_earliest_finish_policy(c.seed); }},
      {{"least-cost", "earliest estimated end, and the delay of others, as in M/G/1 queues", false},
       [](const PolicyContext& c) { return make_least_cost_policy(c.seed); }},
      {{"delay-locality", "as locality-greedy, but waits for a full node that has more", false,
        JudgedBy::kReward, true},
       [](const PolicyContext& c) { return make_delay_locality_policy(c.seed); }},
      {{"delay-finish", "earliest estimated end, data counted twice; may wait for a full node",
        false, JudgedBy::kReward, true},
       [](const PolicyContext& c) { return make_delay_finish_policy(c.seed); }},
      {{"dqn", "least cost, to the task and those after it, as learned from measured tasks", true,
        JudgedBy::kResponse, true},
       [](const PolicyContext& c) { return make_dqn_policy(c.dqn, c.seed, c.dqn_weights); }},
      {{"dqn-published", "the published network of 128 outputs, learning from rewards", true},
       [](const PolicyContext& c) {
         return make_published_policy(c.published, c.seed, c.published_weights);
       }},
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

const PolicyInfo* find_policy(std::string_view name) {
  for (const PolicyInfo& info : registered_policies())
    if (info.name == name) return &info;
  return nullptr;
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

Result<std::unique_ptr<Learner>> make_learner(std::string_view name, const PolicyContext& context,
                                              size_t pending_capacity) {
  if (name == "dqn") {
    auto learner = std::make_unique<DqnLearner>(context.dqn, context.seed, pending_capacity,
                                                context.dqn_weights);
    if (context.start)
      if (Status status = learner->start_from(*context.start); !status)
        return tl::unexpected(status.error());
    return learner;
  }
  if (name == "dqn-published")
    return make_published_learner(context.published, context.seed, pending_capacity,
                                  context.published_weights);
  return fail(ErrorCode::kNotFound, fmt::format("policy '{}' does not learn", name));
}

}  // namespace tierpilot
