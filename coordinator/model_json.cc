#include "coordinator/model_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text/json_text.h"

namespace tierpilot {

using nlohmann::json;

void from_json(const json& in, DatasetUse& use) {
  use.dataset = in.value("dataset", "");
  use.write = in.value("write", false);
}

void from_json(const json& in, DatasetVersion& version) {
  version.dataset = in.value("dataset", "");
  version.version = in.value("version", uint64_t{0});
  version.bytes = in.value("bytes", uint64_t{0});
  version.digest = parse_content_digest(in.value("digest", "")).value_or(ContentDigest{});
}

void from_json(const json& in, Figure& figure) {
  if (in.is_number())
    figure.value = in.get<double>();
  else if (in.is_null())  // what JSON makes of a number that is not finite
    figure.unavailable = "no finite number was given";
  else
    figure.unavailable = in.get<std::string>();
}

static std::optional<double> optional_number(const json& in, const char* key) {
  const auto found = in.find(key);
  if (found == in.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

// What was not finite is null; one such number must not hide the rest.
static double number_or_zero(const json& in, const char* key) {
  in.at(key);
  return optional_number(in, key).value_or(0);
}

// See ExactBytes in json_text.h.
static std::string exact_bytes(const json& in) {
  if (in.is_string()) return in.get<std::string>();
  const auto& hex = in.at("hex").get_ref<const std::string&>();
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const char* end = hex.data() + std::min(i + 2, hex.size());
    unsigned char byte = 0;
    if (const auto [stop, error] = std::from_chars(hex.data() + i, end, byte, 16);
        error != std::errc() || stop != hex.data() + i + 2)
      throw std::invalid_argument("'" + hex + "' is not hexadecimal");
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

// An enumerator by its word.
template <class Enum>
static Enum named(const json& in, const char* key, std::optional<Enum> (*parse)(std::string_view)) {
  const auto& word = in.at(key).get_ref<const std::string&>();
  const auto value = parse(word);
  if (!value) throw std::invalid_argument(std::string(key) + ": '" + word + "' is not known");
  return *value;
}

// The same; "" and a key that older stores lack are none.
template <class Enum>
static std::optional<Enum> named_if_any(const json& in, const char* key,
                                        std::optional<Enum> (*parse)(std::string_view)) {
  if (in.value(key, "").empty()) return std::nullopt;
  return named(in, key, parse);
}

void from_json(const json& in, GangSpec& g) {
  in.at("ranks").get_to(g.ranks);
  g.engine = named(in, "engine", parse_engine);
  in.at("gpus_per_rank").get_to(g.gpus_per_rank);
  in.at("ranks_per_node_min").get_to(g.ranks_per_node_min);
  in.at("ranks_per_node_max").get_to(g.ranks_per_node_max);
  in.at("estimate_ms").get_to(g.estimate_ms);
  g.max_ranks = in.value("max_ranks", 0u);
  in.at("max_restarts").get_to(g.max_restarts);
  in.at("start_within_ms").get_to(g.start_within_ms);
}

void from_json(const json& in, ShareSpec& s) {
  s.wanted = true;
  in.at("milli").get_to(s.milli);
  in.at("latency_sensitive").get_to(s.latency_sensitive);
  in.at("promise_ms").get_to(s.promise_ms);
  s.promise_on_trial = in.value("promise_on_trial", false);
  in.at("estimate_ms").get_to(s.estimate_ms);
  in.at("model_card").get_to(s.model_card);
  if (in.contains("engine")) s.engine = named(in, "engine", parse_engine);
}

void from_json(const json& in, TrainingGoal& q) {
  in.at("weight").get_to(q.weight);
  in.at("measure").get_to(q.measure);
  in.at("rises").get_to(q.rises);
  in.at("goal").get_to(q.goal);
  in.at("deadline_ms").get_to(q.deadline_ms);
}

void from_json(const json& in, TaskSpec& s) {
  in.at("name").get_to(s.name);
  for (const auto& argument : in.at("argv")) s.argv.push_back(exact_bytes(argument));
  for (const auto& variable : in.at("env"))
    s.env.emplace_back(exact_bytes(variable.at(0)), exact_bytes(variable.at(1)));
  in.at("datasets").get_to(s.datasets);
  in.at("units").get_to(s.units);
  in.at("memory_bytes").get_to(s.memory_bytes);
  in.at("float_operations").get_to(s.float_operations);
  in.at("int_operations").get_to(s.int_operations);
  in.at("time_limit_ms").get_to(s.time_limit_ms);
  in.at("after").get_to(s.after);
  in.at("node").get_to(s.node);
  s.memory_tier = in.value("memory_tier", "");  // not in older stores
  s.priority = in.value("priority", 0);
  s.max_units = in.value("max_units", uint32_t{0});
  s.swap_room_bytes = in.value("swap_room_bytes", uint64_t{0});
  if (in.contains("gang")) in.at("gang").get_to(s.gang);
  if (in.contains("share")) in.at("share").get_to(s.share);
  if (in.contains("quality")) in.at("quality").get_to(s.training_goal);
}

void from_json(const json& in, RankOf& r) {
  in.at("gang").get_to(r.gang);
  in.at("rank").get_to(r.rank);
  in.at("pid").get_to(r.pid);
  in.at("cpu_units").get_to(r.cpu_units);
  in.at("gpus").get_to(r.gpus);
}

void from_json(const json& in, UnitShare& s) {
  in.at("unit").get_to(s.unit);
  in.at("milli").get_to(s.milli);
  in.at("memory_bytes").get_to(s.memory_bytes);
  in.at("preemptions").get_to(s.preemptions);
  in.at("predicted_by").get_to(s.predicted_by);
  in.at("predicted_milli").get_to(s.predicted_milli);
  s.predicted_s = number_or_zero(in, "predicted_s");
  s.used_milli = number_or_zero(in, "used_milli");
  if (in.contains("gpu")) in.at("gpu").get_to(s.gpu);
  s.trial_end = named_if_any(in, "trial_end", parse_trial_end).value_or(TrialEnd::kNone);
}

void from_json(const json& in, TaskExit& e) {
  e.how = named(in, "how", parse_task_end);
  in.at("code").get_to(e.code);
  in.at("reason").get_to(e.reason);
  in.at("cpu_user_ns").get_to(e.cpu_user_ns);
  in.at("cpu_system_ns").get_to(e.cpu_system_ns);
  in.at("max_resident_bytes").get_to(e.max_resident_bytes);
  in.at("wall_ns").get_to(e.wall_ns);
  in.at("io_read_bytes").get_to(e.io_read_bytes);
  in.at("io_write_bytes").get_to(e.io_write_bytes);
  in.at("written").get_to(e.written);
  // Older stores have none of these.
  e.node_fault = in.value("node_fault", false);
  e.memory_tier = in.value("memory_tier", "");
  if (in.contains("memory")) in.at("memory").get_to(e.memory);
}

void from_json(const json& in, ServedData& s) {
  in.at("local_bytes").get_to(s.local_bytes);
  in.at("promoted_bytes").get_to(s.promoted_bytes);
  in.at("fetched_bytes").get_to(s.fetched_bytes);
  in.at("evicted_bytes").get_to(s.evicted_bytes);
  in.at("evicted_written_bytes").get_to(s.evicted_written_bytes);
  in.at("latency_ns").get_to(s.latency_ns);
  in.at("evict_gb_per_s").get_to(s.evict_gb_per_s);
  in.at("reference_ns").get_to(s.reference_ns);
  in.at("running_units").get_to(s.running_units);
  // Older stores lack these.
  s.queued_ns = in.value("queued_ns", s.queued_ns);
  s.evict_ns = in.value("evict_ns", s.evict_ns);
  s.promote_ns = in.value("promote_ns", s.promote_ns);
  s.fetch_ns = in.value("fetch_ns", s.fetch_ns);
}

void from_json(const json& in, CandidateRecord& c) {
  in.at("node").get_to(c.node);
  in.at("eligible").get_to(c.eligible);
  in.at("free_fast_bytes").get_to(c.free_fast_bytes);
  in.at("held_fast_bytes").get_to(c.held_fast_bytes);
  in.at("held_slow_bytes").get_to(c.held_slow_bytes);
  in.at("assigned_units").get_to(c.assigned_units);
  in.at("units").get_to(c.units);
  c.ranks = in.value("ranks", c.ranks);
  c.q = optional_number(in, "q");
}

// Older stores have an object for each candidate, newer ones an array for each member.
static void read_candidates(const json& in, std::vector<CandidateRecord>& candidates) {
  if (in.is_array()) {
    in.get_to(candidates);
    return;
  }
  for (size_t i = 0; i < in.at("node").size(); ++i) {
    json row = json::object();
    for (const auto& [name, column] : in.items()) row[name] = column.at(i);
    candidates.push_back(row.get<CandidateRecord>());
  }
}

void from_json(const json& in, RewardRecord& r) {
  in.at("utilisation").get_to(r.utilisation);
  r.latency_term = number_or_zero(in, "latency_term");
  r.penalty_term = number_or_zero(in, "penalty_term");
  in.at("latency_ns").get_to(r.latency_ns);
  in.at("reference_ns").get_to(r.reference_ns);
  in.at("evicted_bytes").get_to(r.evicted_bytes);
  in.at("evict_gb_per_s").get_to(r.evict_gb_per_s);
  r.reward = optional_number(in, "reward");
}

void from_json(const json& in, GangDecision& d) {
  d.expected_h = number_or_zero(in, "expected_h");
  in.at("heuristic").get_to(d.heuristic);
  d.heuristic_h = number_or_zero(in, "heuristic_h");
  in.at("standing").get_to(d.standing);
}

void from_json(const json& in, UnitLook& look) {
  in.at("node").get_to(look.node);
  in.at("unit").get_to(look.unit);
  look.gpu = in.value("gpu", "");
  in.at("free_milli").get_to(look.free_milli);
  in.at("free_memory_bytes").get_to(look.free_memory_bytes);
  in.at("tasks").get_to(look.tasks);
  look.refused = in.value("refused", "");
}

void from_json(const json& in, DecisionRecord& d) {
  in.at("task").get_to(d.attempt.task);
  in.at("attempt").get_to(d.attempt.attempt);
  in.at("policy").get_to(d.policy);
  in.at("node").get_to(d.node);
  in.at("explored").get_to(d.explored);
  in.at("fallback").get_to(d.fallback);
  in.at("reason").get_to(d.reason);
  in.at("decide_ns").get_to(d.decide_ns);
  in.at("weights_version").get_to(d.weights_version);
  in.at("at_ms").get_to(d.at_ms);
  in.at("utilisation").get_to(d.utilisation);
  d.operations = number_or_zero(in, "operations");
  in.at("data_bytes").get_to(d.data_bytes);
  in.at("writes").get_to(d.writes);
  read_candidates(in.at("candidates"), d.candidates);
  // Older stores have the one, newer ones the other.
  d.considered = in.value("considered", static_cast<uint32_t>(d.candidates.size()));
  d.mode = named_if_any(in, "mode", parse_policy_mode);
  d.arm = named_if_any(in, "arm", parse_arm);
  d.proposed = in.value("proposed", "");
  d.kept_back_for = in.value("kept_back_for", "");
  d.kept_back_ms = in.value("kept_back_ms", int64_t{0});
  d.eligible = in.value("eligible", d.considered);
  if (in.contains("encoded")) in.at("encoded").get_to(d.encoded);
  if (in.contains("reward")) in.at("reward").get_to(d.reward);
  if (in.contains("unit_looks")) in.at("unit_looks").get_to(d.unit_looks);
  if (in.contains("gang")) d.gang = in.at("gang").get<GangDecision>();
}

namespace {

template <class T>
Result<T> parse(const std::string& text, const char* what) {
  try {
    return parse_json<json>(text).get<T>();
  } catch (const std::exception& e) {
    return fail(ErrorCode::kInvalid, std::string("store: ") + what + ": " + e.what());
  }
}

}  // namespace

Result<TaskSpec> parse_spec(const std::string& text) {
  return parse<TaskSpec>(text, "task spec");
}
Result<TaskExit> parse_exit(const std::string& text) {
  return parse<TaskExit>(text, "task exit");
}
Result<RankOf> parse_rank(const std::string& text) {
  return parse<RankOf>(text, "rank");
}
Result<UnitShare> parse_unit_share(const std::string& text) {
  return parse<UnitShare>(text, "share of a unit");
}
Result<ServedData> parse_served(const std::string& text) {
  return parse<ServedData>(text, "served data");
}
Result<DecisionRecord> parse_decision(const std::string& text) {
  return parse<DecisionRecord>(text, "decision");
}
Result<RewardRecord> parse_reward(const std::string& text) {
  return parse<RewardRecord>(text, "reward");
}

}  // namespace tierpilot
