#include "tools/demo/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

using nlohmann::ordered_json;

// Measures that a message left out become null with a reason, so that readers find every key.
ordered_json quantiles_or_reason(const ordered_json& quantiles) {
  if (quantiles.is_object()) return quantiles;
  return {{"p50", nullptr},
          {"p50_unavailable", "not reported"},
          {"p99", nullptr},
          {"p99_unavailable", "not reported"}};
}

ordered_json learner_json(const ordered_json& state, const std::optional<double>& quarter) {
  ordered_json json;
  for (const char* key :
       {"experiences", "training_steps", "loss", "loss_unavailable", "weights_version", "epsilon"})
    if (state.contains(key)) json[key] = state[key];
  set_or_unavailable(json, "reward_mean_of_quarter", quarter, "no reward was measured");
  return json;
}

ordered_json policy_json(const PolicyRun& run) {
  ordered_json json{{"name", run.name}};
  json.update(tierload::summary_json(run.summary));
  set_or_unavailable(json, "utilisation", run.utilisation, "no node was up");
  set_or_unavailable(json, "reward_mean", run.rewards.mean, "no reward was measured");
  json["rewards_measured"] = run.rewards.measured;
  json["decision_us"] = quantiles_or_reason(run.decision_us);
  json["fallbacks"] = run.fallbacks;
  json["failures"] = run.failures;
  json["wall_s"] = run.wall_s;
  json["latest_submit_ms"] = run.latest_submit_ms;
  if (!run.learner_end.is_null())
    json["learner"] = {{"start", learner_json(run.learner_start, run.rewards.first_quarter)},
                       {"end", learner_json(run.learner_end, run.rewards.last_quarter)}};
  return json;
}

std::string slow_tier_text(const ordered_json& tiers) {
  for (const auto& tier : tiers)
    if (tier.value("role", "") == "slow")
      return tier.value("kind", "") == "directory"
                 ? "a directory on disk, as this machine has no second NUMA node to use"
                 : "NUMA memory: " + tier.value("place", "");
  return "unavailable: no node reported a slow tier";
}

const std::vector<Column> kTierColumns{{"NODE", "/node"},
                                       {"TIER", "/tier"},
                                       {"KIND", "/kind"},
                                       {"ROLE", "/role"},
                                       {"P50 ns", "/latency_ns/p50", Format::kNumber},
                                       {"P99 ns", "/latency_ns/p99", Format::kNumber},
                                       {"READ GB/s", "/read_gb_per_s", Format::kNumber},
                                       {"WRITE GB/s", "/write_gb_per_s", Format::kNumber},
                                       {"EVICT GB/s", "/evict_gb_per_s", Format::kNumber},
                                       {"PROMOTE GB/s", "/promote_gb_per_s", Format::kNumber}};

const std::vector<Column> kPolicyColumns{{"POLICY", "/name"},
                                         {"TASKS", "/tasks", Format::kNumber},
                                         {"FAILED", "/failed", Format::kNumber},
                                         {"WAIT ms", "/wait_ms/mean", Format::kNumber},
                                         {"p99", "/wait_ms/p99", Format::kNumber},
                                         {"RESPONSE ms", "/response_ms/mean", Format::kNumber},
                                         {"p99", "/response_ms/p99", Format::kNumber},
                                         {"UTILISED", "/utilisation", Format::kPercent},
                                         {"LOCAL BYTES", "/local_byte_share", Format::kPercent},
                                         {"EVICTED", "/evicted_bytes", Format::kBytes},
                                         {"REWARD", "/reward_mean", Format::kNumber},
                                         {"DECIDED us", "/decision_us/p50", Format::kNumber},
                                         {"p99", "/decision_us/p99", Format::kNumber},
                                         {"FALLBACKS", "/fallbacks", Format::kNumber}};

const std::vector<Column> kLearnerColumns{
    {"", "/when"},
    {"EXPERIENCES", "/experiences", Format::kNumber},
    {"TRAINING STEPS", "/training_steps", Format::kNumber},
    {"LOSS", "/loss", Format::kNumber},
    {"WEIGHTS VERSION", "/weights_version", Format::kNumber},
    {"MEAN REWARD OF THAT QUARTER", "/reward_mean_of_quarter", Format::kNumber}};

void print_learners(std::ostream& out, const ordered_json& report) {
  for (const auto& policy : report["policies"]) {
    if (!policy.contains("learner")) continue;
    ordered_json rows = ordered_json::array();
    for (const char* when : {"start", "end"}) {
      rows.push_back(policy["learner"][when]);
      rows.back()["when"] = when;
    }
    out << '\n'
        << format_table({{"rows", rows}},
                        {.title = fmt::format("Where {} stood at its start and at its end",
                                              policy["name"].get<std::string>()),
                         .rows = "/rows",
                         .columns = kLearnerColumns});
  }
}

}  // namespace

std::string comparison(const std::vector<PolicyRun>& runs) {
  const PolicyRun* learned = nullptr;
  const PolicyRun* best = nullptr;
  const PolicyRun* random = nullptr;
  for (const auto& run : runs) {
    if (!run.rewards.mean) continue;
    if (!run.learner_end.is_null())
      learned = learned ? learned : &run;
    else if (run.name == "random")
      random = &run;
    else if (!best || *run.rewards.mean > *best->rewards.mean)
      best = &run;
  }
  if (!learned || (!random && !best)) return "";
  std::string text = fmt::format("{}'s mean reward {:.3f}", learned->name, *learned->rewards.mean);
  for (const auto* other : {random, best})
    if (other)
      text += fmt::format("; {:+.1f} % against {} ({:.3f})",
                          (*learned->rewards.mean / *other->rewards.mean - 1) * 100,
                          other == best ? "the best heuristic, " + other->name : other->name,
                          *other->rewards.mean);
  return text;
}

ordered_json report_json(const RunFacts& facts, const ordered_json& tiers,
                         const std::vector<PolicyRun>& runs) {
  ordered_json report{{"schema", 1},
                      {"run",
                       {{"seed", facts.seed},
                        {"nodes", facts.nodes},
                        {"cpus", facts.cpus},
                        {"tasks", facts.tasks},
                        {"datasets", facts.datasets},
                        {"dataset_bytes", facts.dataset_bytes},
                        {"fast_budget_bytes", facts.fast_budget_bytes},
                        {"load_at_start", facts.load_at_start}}},
                      {"slow_tier", slow_tier_text(tiers)},
                      {"tiers", tiers},
                      {"policies", ordered_json::array()}};
  for (auto& tier : report["tiers"]) tier["latency_ns"] = quantiles_or_reason(tier["latency_ns"]);
  for (const auto& run : runs) report["policies"].push_back(policy_json(run));
  report["comparison"] = comparison(runs);
  return report;
}

void print_report(std::ostream& out, const ordered_json& report) {
  out << '\n'
      << format_table(report, {.title = "The same workload under each policy",
                               .rows = "/policies",
                               .columns = kPolicyColumns});
  print_learners(out, report);
  if (const auto text = report["comparison"].get<std::string>(); !text.empty())
    out << '\n' << text << '\n';
  out << '\n'
      << format_table(report, {.title = "The nodes' memory tiers, as measured (the slow tier is " +
                                        report["slow_tier"].get<std::string>() + ")",
                               .rows = "/tiers",
                               .columns = kTierColumns});
}

}  // namespace tierpilot::demo
