#include "policies/sim/comparison.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tierpilot::sim {
namespace {

using nlohmann::ordered_json;

struct Measure {
  const char* name;
  double (*of)(const RunResult&);
  bool compared = false;  // with the baseline
};

const Measure kMeasures[] = {
    {"wait_mean_s", [](const RunResult& r) { return r.wait_s.mean; }, true},
    {"wait_p50_s", [](const RunResult& r) { return r.wait_s.p50; }},
    {"wait_p99_s", [](const RunResult& r) { return r.wait_s.p99; }, true},
    {"response_mean_s", [](const RunResult& r) { return r.response_s.mean; }, true},
    {"response_p50_s", [](const RunResult& r) { return r.response_s.p50; }},
    {"response_p99_s", [](const RunResult& r) { return r.response_s.p99; }, true},
    {"utilisation", [](const RunResult& r) { return r.utilisation; }},
    {"hit_bytes", [](const RunResult& r) { return static_cast<double>(r.hit_bytes); }},
    {"promoted_bytes", [](const RunResult& r) { return static_cast<double>(r.promoted_bytes); }},
    {"fetched_bytes", [](const RunResult& r) { return static_cast<double>(r.fetched_bytes); }},
    {"evicted_bytes", [](const RunResult& r) { return static_cast<double>(r.evicted_bytes); }},
    {"evicted_written_bytes",
     [](const RunResult& r) { return static_cast<double>(r.evicted_written_bytes); }},
    {"fairness", [](const RunResult& r) { return r.fairness; }},
    {"makespan_s", [](const RunResult& r) { return r.makespan_s; }},
    {"reward_mean", [](const RunResult& r) { return r.reward_mean; }, true},
};

struct Count {
  const char* name;
  uint64_t RunResult::*member;
};

const Count kCounts[] = {
    {"tasks", &RunResult::tasks},
    {"succeeded", &RunResult::succeeded},
    {"failed", &RunResult::failed},
    {"rejected", &RunResult::rejected},
    {"unfinished", &RunResult::unfinished},
    {"node_failures", &RunResult::node_failures},
    {"gpu_failures", &RunResult::gpu_failures},
    {"restarts", &RunResult::restarts},
    {"decisions", &RunResult::decisions},
    {"holds", &RunResult::holds},
    {"rewards", &RunResult::rewards},
    {"events", &RunResult::events},
};

void put(ordered_json& object, const std::string& key, const RunResult& result,
         const Measure& measure) {
  if (result.succeeded > 0) {
    object[key] = measure.of(result);
  } else {
    object[key] = nullptr;
    object[key + "_unavailable"] = kNoTask;
  }
}

std::vector<const PolicyRun*> runs_of(const std::vector<PolicyRun>& runs,
                                      const std::string& policy) {
  std::vector<const PolicyRun*> chosen;
  for (const PolicyRun& run : runs)
    if (run.policy == policy && run.result.succeeded > 0) chosen.push_back(&run);
  return chosen;
}

ordered_json policy_json(const std::vector<PolicyRun>& runs, const std::string& policy) {
  ordered_json row{{"policy", policy}};
  const auto chosen = runs_of(runs, policy);
  row["seeds"] = chosen.size();
  for (const Count& count : kCounts) {
    uint64_t sum = 0;
    for (const PolicyRun& run : runs)
      if (run.policy == policy) sum += run.result.*count.member;
    row[count.name] = sum;
  }
  for (const Measure& measure : kMeasures) {
    std::vector<double> values;
    for (const PolicyRun* run : chosen) values.push_back(measure.of(run->result));
    row[measure.name] = estimate_json(values);
  }
  return row;
}

// Relative: 0.1 is a tenth more than the baseline with the same seed.
ordered_json difference_json(const std::vector<PolicyRun>& runs, const std::string& policy,
                             const std::string& baseline) {
  ordered_json row{{"policy", policy}, {"baseline", baseline}};
  for (const Measure& measure : kMeasures) {
    if (!measure.compared) continue;
    std::vector<double> values;
    bool none_succeeded = true;
    for (const PolicyRun* run : runs_of(runs, policy))
      for (const PolicyRun* base : runs_of(runs, baseline)) {
        if (base->seed != run->seed) continue;
        none_succeeded = none_succeeded && base->result.succeeded == 0;
        if (const double of = measure.of(base->result); of != 0)
          values.push_back((measure.of(run->result) - of) / std::abs(of));
      }
    row[measure.name] = estimate_json(values, none_succeeded ? kNoTask : "the baseline's is 0");
  }
  return row;
}

}  // namespace

ordered_json run_json(const PolicyRun& run) {
  ordered_json row{{"policy", run.policy}, {"seed", run.seed}};
  for (const Count& count : kCounts) row[count.name] = run.result.*count.member;
  for (const Measure& measure : kMeasures) put(row, measure.name, run.result, measure);
  return row;
}

ordered_json estimate_json(const std::vector<double>& values, std::string_view why_none) {
  if (values.empty()) return {{"mean", nullptr}, {"mean_unavailable", why_none}, {"ci95", nullptr}};
  const Estimate found = estimate(values);
  ordered_json json{{"mean", found.mean}, {"ci95", nullptr}};
  if (found.half_width)
    json["ci95"] = *found.half_width;
  else
    json["ci95_unavailable"] = "one seed has no spread";
  return json;
}

Estimate estimate(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Estimate found;
  found.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2) return found;
  double squares = 0;
  for (const double value : values) squares += (value - found.mean) * (value - found.mean);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.975);
  found.half_width = t * std::sqrt(squares / (n - 1) / n);
  return found;
}

Result<std::vector<PolicyRun>> compare(const ClusterSpec& cluster, const WorkloadSource& source,
                                       const ComparisonOptions& options) {
  std::vector<PolicyRun> runs;
  const auto all = static_cast<double>(options.seeds * options.policies.size());
  for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
    const auto workload = source.make(cluster, seed);
    if (!workload) return tl::unexpected(workload.error());
    for (const std::string& name : options.policies) {
      const auto player = options.make_player(name, seed);
      if (!player) return tl::unexpected(player.error());
      player->policy->explain(false);
      std::unique_ptr<gang::Placer> gang_placer;
      if (options.make_gang_placer) {
        auto made = options.make_gang_placer(seed);
        if (!made) return tl::unexpected(made.error());
        gang_placer = std::move(*made);
      }
      RunOptions run{
          .seed = seed, .listener = player->learner.get(), .gang_placer = gang_placer.get()};
      if (options.progress)
        run.progress = [&, done = static_cast<double>(runs.size())](double share) {
          return options.progress((done + share) / all);
        };
      auto result = simulate(cluster, *workload, *player->policy, run);
      if (!result) return fail(result.error().code, name + ": " + result.error().message);
      // Their summary is in the result, and a million of them for every run are not wanted.
      if (seed != 1) result->responses_s = {};
      runs.push_back({name, seed, std::move(*result)});
    }
  }
  return runs;
}

ordered_json comparison_json(const std::vector<PolicyRun>& runs, const std::string& baseline) {
  ordered_json value{{"runs", ordered_json::array()},
                     {"policies", ordered_json::array()},
                     {"differences", ordered_json::array()}};
  for (const PolicyRun& run : runs) {
    value["runs"].push_back(run_json(run));
    if (run.seed != 1) continue;
    value["policies"].push_back(policy_json(runs, run.policy));
    if (run.policy != baseline)
      value["differences"].push_back(difference_json(runs, run.policy, baseline));
  }
  return value;
}

}  // namespace tierpilot::sim
