#include "tools/demo/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/demo/rounds.h"
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
  set_or_unavailable(json, "cpus_busy", run.cpus_busy, "the kernel does not say");
  set_or_unavailable(json, "reward_mean", run.rewards.mean, "no reward was measured");
  json["rewards_measured"] = run.rewards.measured;
  json["decision_us"] = quantiles_or_reason(run.decision_us);
  json["fallbacks"] = run.fallbacks;
  json["failures"] = run.failures;
  json["wall_s"] = run.wall_s;
  json["round_response_ms"] = run.round_response_ms;
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
                                         {"DATA ms", "/data_ms/mean", Format::kNumber},
                                         {"RUN ms", "/run_ms/mean", Format::kNumber},
                                         {"CPU ms", "/cpu_ms/mean", Format::kNumber},
                                         {"RESPONSE ms", "/response_ms/mean", Format::kNumber},
                                         {"p99", "/response_ms/p99", Format::kNumber},
                                         {"CPUS BUSY", "/cpus_busy", Format::kPercent},
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

namespace {

const PolicyRun* first_learner(const std::vector<PolicyRun>& runs) {
  for (const auto& run : runs)
    if (!run.learner_end.is_null()) return &run;
  return nullptr;
}

std::string response_comparison(const PolicyRun& learned, const PolicyRun& best) {
  if (!learned.summary.response_ms) return "";
  const double ours = learned.summary.response_ms->mean, theirs = best.summary.response_ms->mean;
  auto text = fmt::format(
      "{}'s mean response is {:.1f} ms, {:+.1f} % against the best heuristic's ({}, {:.1f} ms)",
      learned.name, ours, (ours / theirs - 1) * 100, best.name, theirs);
  const auto difference = response_difference(learned, best);
  if (!difference) return text + "; a single round cannot tell whether that is more than noise\n";
  return text +
         fmt::format("; by rounds {:+.1f} % [{:+.1f}, {:+.1f}], 95 % over {}: {}\n",
                     difference->percent, difference->low, difference->high, difference->rounds,
                     difference->more_than_noise() ? "more than noise" : "not told from noise");
}

std::string reward_comparison(const PolicyRun& learned, const std::vector<PolicyRun>& runs) {
  if (!learned.rewards.mean) return "";
  std::string text;
  for (const auto& other : runs)
    if (other.learner_end.is_null() && other.rewards.mean)
      text += fmt::format("{} {:+.1f} % against {} ({:.3f})", text.empty() ? ":" : ",",
                          (*learned.rewards.mean / *other.rewards.mean - 1) * 100, other.name,
                          *other.rewards.mean);
  return text.empty() ? ""
                      : fmt::format("its mean reward is {:.3f}{}", *learned.rewards.mean, text);
}

ordered_json difference_json(const std::vector<PolicyRun>& runs) {
  const auto* learned = first_learner(runs);
  const auto* best = best_heuristic(runs);
  if (!learned || !best) return nullptr;
  const auto difference = response_difference(*learned, *best);
  if (!difference) return nullptr;
  return {{"policy", learned->name},
          {"against", best->name},
          {"percent", difference->percent},
          {"low", difference->low},
          {"high", difference->high},
          {"rounds", difference->rounds},
          {"more_than_noise", difference->more_than_noise()}};
}

}  // namespace

std::string comparison(const std::vector<PolicyRun>& runs) {
  const auto* learned = first_learner(runs);
  if (!learned) return "";
  const auto* best = best_heuristic(runs);
  return (best ? response_comparison(*learned, *best) : "") + reward_comparison(*learned, runs);
}

ordered_json report_json(const RunFacts& facts, const ordered_json& tiers,
                         const std::vector<PolicyRun>& runs) {
  ordered_json report{{"schema", 1},
                      {"run",
                       {{"seed", facts.seed},
                        {"nodes", facts.nodes},
                        {"cpus", facts.cpus},
                        {"rounds", facts.rounds},
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
  report["response_difference"] = difference_json(runs);
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
