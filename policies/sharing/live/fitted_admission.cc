// Which promises `share` makes.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "policies/sharing/live/claims.h"
#include "policies/sharing/live/closely.h"
#include "policies/sharing/live/fitted_policy.h"

namespace tierpilot::sharing {
namespace {

// What promises have of it now.
uint32_t claimed_milli(const LiveUnit& unit) {
  uint32_t milli = 0;
  for (const auto& job : unit.jobs)
    if (job.job_class == JobClass::kLatencySensitive) milli += job.share.milli;
  return milli;
}

// Of each type, of a large cluster those that somebody is bound to, and with the fewest claims.
std::vector<Claims> claims_on(const std::vector<LiveNode>& nodes,
                              const std::set<std::string>& types,
                              const std::vector<WaitingJob>& coming, const Retained& retained) {
  std::set<size_t> bound;
  for (const auto& job : coming)
    if (job.only_node) bound.insert(*job.only_node);
  std::vector<Claims> all;
  for (const auto& type : types) {
    const auto rank = [&](const LiveUnit& unit,
                          size_t node) -> std::optional<std::pair<bool, uint32_t>> {
      if (unit.type != type) return std::nullopt;
      return std::pair(!bound.empty() && !bound.contains(node), claimed_milli(unit));
    };
    for (const auto& [n, u] : looked_at_closely(nodes, rank))
      all.emplace_back(n, nodes[n][u], retained);
  }
  return all;
}

void add_types(const std::vector<WaitingJob>& jobs, std::set<std::string>& types) {
  for (const auto& job : jobs)
    for (const auto& [type, _] : job.predicted) types.insert(type);
}

struct Choice {
  Plan plan;
  Claims* claims = nullptr;
};

class FittedPromises final : public Promises {
 public:
  FittedPromises(const std::vector<LiveNode>& nodes, const std::vector<WaitingJob>& ahead,
                 const std::vector<WaitingJob>& coming, const Retained& retained) {
    std::set<std::string> types;
    add_types(coming, types);
    add_types(ahead, types);
    claims_ = claims_on(nodes, types, coming, retained);
    for (const auto& job : ahead) add(job);
  }

  void add(const WaitingJob& job) override {
    if (job.job_class != JobClass::kLatencySensitive) return;
    if (const auto choice = soonest_for(job); choice.claims)
      choice.claims->add(choice.plan, job, job.predicted.at(choice.claims->unit().type));
  }

  Admission ask(const WaitingJob& job) override {
    if (!job.is_promised()) return {};
    for (const auto& [type, predicted] : job.predicted)
      if (predicted.run_upper_s <= 0)
        return {false, 0,
                "its run time on " + type +
                    " is not known, so that nothing can be promised: give an estimate"};
    const auto choice = soonest_for(job);
    if (!choice.claims) return {false, 0, why_nowhere(job)};
    const double end_s = choice.plan.end_s;
    if (end_s <= job.promise_left_s)
      return {true, end_s, fmt::format("it can be done after {:.0f} s", end_s)};
    return {false, end_s,
            fmt::format("with 95 % certainty it is done after {:.0f} s, not {:g}", end_s,
                        job.promise_left_s)};
  }

 private:
  Choice soonest_for(const WaitingJob& job) {
    Choice best;
    for (auto& claims : claims_) {
      const auto predicted = job.predicted.find(claims.unit().type);
      if (predicted == job.predicted.end() || !claims.may_run(job, predicted->second)) continue;
      const auto plan = claims.plan(job, predicted->second);
      if (plan.milli > 0 && (!best.claims || plan.end_s < best.plan.end_s)) best = {plan, &claims};
    }
    return best;
  }
  std::string why_nowhere(const WaitingJob& job) const {
    const bool fits = std::any_of(claims_.begin(), claims_.end(), [&](const Claims& claims) {
      const auto predicted = job.predicted.find(claims.unit().type);
      return predicted != job.predicted.end() && claims.may_run(job, predicted->second);
    });
    return fits ? "nobody knows how long those take that have the units, or come first: they have "
                  "no estimate, or outlast it"
                : "there is no unit that it could run on";
  }

  std::vector<Claims> claims_;
};

}  // namespace

std::unique_ptr<Promises> FittedPolicy::promises(const std::vector<LiveNode>& nodes,
                                                 const std::vector<WaitingJob>& ahead,
                                                 const std::vector<WaitingJob>& coming) {
  return std::make_unique<FittedPromises>(nodes, ahead, coming, retained_);
}

}  // namespace tierpilot::sharing
