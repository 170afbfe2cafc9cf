#include "coordinator/model_json.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/text/json_text.h"
#include "base/text/json_whole.h"

namespace tierpilot {

using nlohmann::json;

template <class Value>
static void take(const json& in, Value& value) {
  if constexpr (std::integral<Value> && !std::same_as<Value, bool>)
    value = whole_number<Value>(in);
  else
    in.get_to(value);
}

template <std::integral Value>
static void take(const json& in, std::vector<Value>& values) {
  for (const auto& each : in.get_ref<const json::array_t&>()) take(each, values.emplace_back());
}

template <class Value>
static void take(const json& in, const char* key, Value& value) {
  take(in.at(key), value);
}

// Older stores lack some.
template <class Value>
static void take_if_any(const json& in, const char* key, Value& value) {
  if (const auto found = in.find(key); found != in.end()) take(*found, value);
}

void from_json(const json& in, DatasetUse& use) {
  use.dataset = in.value("dataset", "");
  use.write = in.value("write", false);
}

void from_json(const json& in, DatasetVersion& version) {
  version.dataset = in.value("dataset", "");
  take_if_any(in, "version", version.version);
  take_if_any(in, "bytes", version.bytes);
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
  take(in, "ranks", g.ranks);
  g.engine = named(in, "engine", parse_engine);
  take(in, "gpus_per_rank", g.gpus_per_rank);
  take(in, "ranks_per_node_min", g.ranks_per_node_min);
  take(in, "ranks_per_node_max", g.ranks_per_node_max);
  take(in, "estimate_ms", g.estimate_ms);
  take_if_any(in, "max_ranks", g.max_ranks);
  take(in, "max_restarts", g.max_restarts);
  take(in, "start_within_ms", g.start_within_ms);
}

void from_json(const json& in, ShareSpec& s) {
  s.wanted = true;
  take(in, "milli", s.milli);
  take(in, "latency_sensitive", s.latency_sensitive);
  take(in, "promise_ms", s.promise_ms);
  s.promise_on_trial = in.value("promise_on_trial", false);
  take(in, "estimate_ms", s.estimate_ms);
  take(in, "model_card", s.model_card);
  if (in.contains("engine")) s.engine = named(in, "engine", parse_engine);
}

void from_json(const json& in, TrainingGoal& q) {
  take(in, "weight", q.weight);
  take(in, "measure", q.measure);
  take(in, "rises", q.rises);
  take(in, "goal", q.goal);
  take(in, "deadline_ms", q.deadline_ms);
}

void from_json(const json& in, TaskSpec& s) {
  take(in, "name", s.name);
  for (const auto& argument : in.at("argv")) s.argv.push_back(exact_bytes(argument));
  for (const auto& variable : in.at("env"))
    s.env.emplace_back(exact_bytes(variable.at(0)), exact_bytes(variable.at(1)));
  take(in, "datasets", s.datasets);
  take(in, "units", s.units);
  take(in, "memory_bytes", s.memory_bytes);
  take(in, "float_operations", s.float_operations);
  take(in, "int_operations", s.int_operations);
  take(in, "time_limit_ms", s.time_limit_ms);
  take(in, "after", s.after);
  take(in, "node", s.node);
  s.memory_tier = in.value("memory_tier", "");  // not in older stores
  take_if_any(in, "priority", s.priority);
  take_if_any(in, "max_units", s.max_units);
  take_if_any(in, "swap_room_bytes", s.swap_room_bytes);
  if (in.contains("gang")) take(in, "gang", s.gang);
  if (in.contains("share")) take(in, "share", s.share);
  if (in.contains("quality")) take(in, "quality", s.training_goal);
}

void from_json(const json& in, RankOf& r) {
  take(in, "gang", r.gang);
  take(in, "rank", r.rank);
  take(in, "pid", r.pid);
  take(in, "cpu_units", r.cpu_units);
  take(in, "gpus", r.gpus);
}

void from_json(const json& in, UnitShare& s) {
  take(in, "unit", s.unit);
  take(in, "milli", s.milli);
  take(in, "memory_bytes", s.memory_bytes);
  take(in, "preemptions", s.preemptions);
  take(in, "predicted_by", s.predicted_by);
  take(in, "predicted_milli", s.predicted_milli);
  s.predicted_s = number_or_zero(in, "predicted_s");
  s.used_milli = number_or_zero(in, "used_milli");
  if (in.contains("gpu")) take(in, "gpu", s.gpu);
  s.trial_end = named_if_any(in, "trial_end", parse_trial_end).value_or(TrialEnd::kNone);
}

void from_json(const json& in, TaskExit& e) {
  e.how = named(in, "how", parse_task_end);
  take(in, "code", e.code);
  take(in, "reason", e.reason);
  take(in, "cpu_user_ns", e.cpu_user_ns);
  take(in, "cpu_system_ns", e.cpu_system_ns);
  take(in, "max_resident_bytes", e.max_resident_bytes);
  take(in, "wall_ns", e.wall_ns);
  take(in, "io_read_bytes", e.io_read_bytes);
  take(in, "io_write_bytes", e.io_write_bytes);
  take(in, "written", e.written);
  // Older stores have none of these.
  e.node_fault = in.value("node_fault", false);
  e.memory_tier = in.value("memory_tier", "");
  if (in.contains("memory")) take(in, "memory", e.memory);
}

void from_json(const json& in, ServedData& s) {
  take(in, "local_bytes", s.local_bytes);
  take(in, "promoted_bytes", s.promoted_bytes);
  take(in, "fetched_bytes", s.fetched_bytes);
  take(in, "evicted_bytes", s.evicted_bytes);
  take(in, "evicted_written_bytes", s.evicted_written_bytes);
  take(in, "latency_ns", s.latency_ns);
  take(in, "evict_gb_per_s", s.evict_gb_per_s);
  take(in, "reference_ns", s.reference_ns);
  take(in, "running_units", s.running_units);
  // Older stores lack these.
  take_if_any(in, "queued_ns", s.queued_ns);
  take_if_any(in, "evict_ns", s.evict_ns);
  take_if_any(in, "promote_ns", s.promote_ns);
  take_if_any(in, "fetch_ns", s.fetch_ns);
}

// `find` has its value of a name; null: none.
template <class Find>
static CandidateRecord candidate_of(const Find& find) {
  CandidateRecord c;
  const auto need = [&](const char* key, auto& value) {
    const json* found = find(key);
    if (!found) throw std::invalid_argument(std::string("a candidate has no '") + key + "'");
    take(*found, value);
  };
  need("node", c.node);
  need("eligible", c.eligible);
  need("free_fast_bytes", c.free_fast_bytes);
  need("held_fast_bytes", c.held_fast_bytes);
  need("held_slow_bytes", c.held_slow_bytes);
  need("assigned_units", c.assigned_units);
  need("units", c.units);
  if (const json* ranks = find("ranks")) take(*ranks, c.ranks);
  if (const json* q = find("q"); q && !q->is_null()) c.q = q->get<double>();
  return c;
}

static const json* member_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Older stores have an object for each candidate, newer ones an array for each member.
static void read_candidates(const json& in, std::vector<CandidateRecord>& candidates) {
  if (in.is_array()) {
    for (const auto& each : in)
      candidates.push_back(candidate_of([&](const char* key) { return member_of(each, key); }));
    return;
  }
  // Not copied into objects: what is nested deep would be the end of the stack.
  for (size_t i = 0; i < in.at("node").size(); ++i)
    candidates.push_back(candidate_of([&](const char* key) {
      const json* column = member_of(in, key);
      return column ? &column->at(i) : nullptr;
    }));
}

void from_json(const json& in, RewardRecord& r) {
  take(in, "utilisation", r.utilisation);
  r.latency_term = number_or_zero(in, "latency_term");
  r.penalty_term = number_or_zero(in, "penalty_term");
  take(in, "latency_ns", r.latency_ns);
  take(in, "reference_ns", r.reference_ns);
  take(in, "evicted_bytes", r.evicted_bytes);
  take(in, "evict_gb_per_s", r.evict_gb_per_s);
  r.reward = optional_number(in, "reward");
}

void from_json(const json& in, GangDecision& d) {
  d.expected_h = number_or_zero(in, "expected_h");
  take(in, "heuristic", d.heuristic);
  d.heuristic_h = number_or_zero(in, "heuristic_h");
  take(in, "standing", d.standing);
}

void from_json(const json& in, UnitLook& look) {
  take(in, "node", look.node);
  take(in, "unit", look.unit);
  look.gpu = in.value("gpu", "");
  take(in, "free_milli", look.free_milli);
  take(in, "free_memory_bytes", look.free_memory_bytes);
  take(in, "tasks", look.tasks);
  look.refused = in.value("refused", "");
}

void from_json(const json& in, DecisionRecord& d) {
  take(in, "task", d.attempt.task);
  take(in, "attempt", d.attempt.attempt);
  take(in, "policy", d.policy);
  take(in, "node", d.node);
  take(in, "explored", d.explored);
  take(in, "fallback", d.fallback);
  take(in, "reason", d.reason);
  take(in, "decide_ns", d.decide_ns);
  take(in, "weights_version", d.weights_version);
  take(in, "at_ms", d.at_ms);
  take(in, "utilisation", d.utilisation);
  d.operations = number_or_zero(in, "operations");
  take(in, "data_bytes", d.data_bytes);
  take(in, "writes", d.writes);
  read_candidates(in.at("candidates"), d.candidates);
  // Older stores have the one, newer ones the other.
  d.considered = static_cast<uint32_t>(d.candidates.size());
  take_if_any(in, "considered", d.considered);
  d.mode = named_if_any(in, "mode", parse_policy_mode);
  d.arm = named_if_any(in, "arm", parse_arm);
  d.proposed = in.value("proposed", "");
  d.kept_back_for = in.value("kept_back_for", "");
  take_if_any(in, "kept_back_ms", d.kept_back_ms);
  d.eligible = d.considered;
  take_if_any(in, "eligible", d.eligible);
  if (in.contains("encoded")) take(in, "encoded", d.encoded);
  if (in.contains("reward")) take(in, "reward", d.reward);
  if (in.contains("unit_looks")) take(in, "unit_looks", d.unit_looks);
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
