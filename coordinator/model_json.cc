#include "coordinator/model_json.h"

#include <nlohmann/json.hpp>

namespace tierpilot {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DatasetUse, dataset, write)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DatasetVersion, dataset, version, bytes)

void to_json(json& out, const Figure& figure) {
  if (figure.value)
    out = *figure.value;
  else
    out = figure.unavailable;
}

void from_json(const json& in, Figure& figure) {
  if (in.is_number())
    figure.value = in.get<double>();
  else
    figure.unavailable = in.get<std::string>();
}

static void put(json& out, const char* key, const std::optional<double>& value) {
  out[key] = value ? json(*value) : json(nullptr);
}

static std::optional<double> optional_number(const json& in, const char* key) {
  const auto found = in.find(key);
  if (found == in.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

void to_json(json& out, const TaskSpec& s) {
  out = {{"name", s.name},
         {"argv", s.argv},
         {"env", s.env},
         {"datasets", s.datasets},
         {"units", s.units},
         {"memory_bytes", s.memory_bytes},
         {"float_operations", s.float_operations},
         {"int_operations", s.int_operations},
         {"time_limit_ms", s.time_limit_ms},
         {"after", s.after},
         {"node", s.node},
         {"memory_tier", s.memory_tier}};
}

void from_json(const json& in, TaskSpec& s) {
  in.at("name").get_to(s.name);
  in.at("argv").get_to(s.argv);
  in.at("env").get_to(s.env);
  in.at("datasets").get_to(s.datasets);
  in.at("units").get_to(s.units);
  in.at("memory_bytes").get_to(s.memory_bytes);
  in.at("float_operations").get_to(s.float_operations);
  in.at("int_operations").get_to(s.int_operations);
  in.at("time_limit_ms").get_to(s.time_limit_ms);
  in.at("after").get_to(s.after);
  in.at("node").get_to(s.node);
  s.memory_tier = in.value("memory_tier", "");  // not in older stores
}

void to_json(json& out, const TaskExit& e) {
  out = {{"how", e.how},
         {"code", e.code},
         {"reason", e.reason},
         {"cpu_user_ns", e.cpu_user_ns},
         {"cpu_system_ns", e.cpu_system_ns},
         {"max_resident_bytes", e.max_resident_bytes},
         {"wall_ns", e.wall_ns},
         {"io_read_bytes", e.io_read_bytes},
         {"io_write_bytes", e.io_write_bytes},
         {"written", e.written},
         {"memory_tier", e.memory_tier},
         {"memory", e.memory}};
}

void from_json(const json& in, TaskExit& e) {
  in.at("how").get_to(e.how);
  in.at("code").get_to(e.code);
  in.at("reason").get_to(e.reason);
  in.at("cpu_user_ns").get_to(e.cpu_user_ns);
  in.at("cpu_system_ns").get_to(e.cpu_system_ns);
  in.at("max_resident_bytes").get_to(e.max_resident_bytes);
  in.at("wall_ns").get_to(e.wall_ns);
  in.at("io_read_bytes").get_to(e.io_read_bytes);
  in.at("io_write_bytes").get_to(e.io_write_bytes);
  in.at("written").get_to(e.written);
  // Older stores have neither.
  e.memory_tier = in.value("memory_tier", "");
  if (in.contains("memory")) in.at("memory").get_to(e.memory);
}

// Older stores lack the last four.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ServedData, local_bytes, promoted_bytes,
                                                fetched_bytes, evicted_bytes, evicted_written_bytes,
                                                latency_ns, evict_gb_per_s, reference_ns,
                                                running_units, queued_ns, evict_ns, promote_ns,
                                                fetch_ns)

void to_json(json& out, const CandidateRecord& c) {
  out = {{"node", c.node},
         {"eligible", c.eligible},
         {"free_fast_bytes", c.free_fast_bytes},
         {"held_fast_bytes", c.held_fast_bytes},
         {"held_slow_bytes", c.held_slow_bytes},
         {"assigned_units", c.assigned_units},
         {"units", c.units}};
  put(out, "q", c.q);
}

void from_json(const json& in, CandidateRecord& c) {
  in.at("node").get_to(c.node);
  in.at("eligible").get_to(c.eligible);
  in.at("free_fast_bytes").get_to(c.free_fast_bytes);
  in.at("held_fast_bytes").get_to(c.held_fast_bytes);
  in.at("held_slow_bytes").get_to(c.held_slow_bytes);
  in.at("assigned_units").get_to(c.assigned_units);
  in.at("units").get_to(c.units);
  c.q = optional_number(in, "q");
}

void to_json(json& out, const RewardRecord& r) {
  out = {{"utilisation", r.utilisation},      {"latency_term", r.latency_term},
         {"penalty_term", r.penalty_term},    {"latency_ns", r.latency_ns},
         {"reference_ns", r.reference_ns},    {"evicted_bytes", r.evicted_bytes},
         {"evict_gb_per_s", r.evict_gb_per_s}};
  put(out, "reward", r.reward);
}

void from_json(const json& in, RewardRecord& r) {
  in.at("utilisation").get_to(r.utilisation);
  in.at("latency_term").get_to(r.latency_term);
  in.at("penalty_term").get_to(r.penalty_term);
  in.at("latency_ns").get_to(r.latency_ns);
  in.at("reference_ns").get_to(r.reference_ns);
  in.at("evicted_bytes").get_to(r.evicted_bytes);
  in.at("evict_gb_per_s").get_to(r.evict_gb_per_s);
  r.reward = optional_number(in, "reward");
}

void to_json(json& out, const DecisionRecord& d) {
  out = {{"task", d.attempt.task},
         {"attempt", d.attempt.attempt},
         {"policy", d.policy},
         {"node", d.node},
         {"explored", d.explored},
         {"fallback", d.fallback},
         {"mode", d.mode},
         {"arm", d.arm},
         {"proposed", d.proposed},
         {"reason", d.reason},
         {"decide_ns", d.decide_ns},
         {"weights_version", d.weights_version},
         {"at_ms", d.at_ms},
         {"utilisation", d.utilisation},
         {"operations", d.operations},
         {"data_bytes", d.data_bytes},
         {"writes", d.writes},
         {"eligible", d.eligible},
         {"considered", d.considered},
         {"candidates", d.candidates}};
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
  in.at("operations").get_to(d.operations);
  in.at("data_bytes").get_to(d.data_bytes);
  in.at("writes").get_to(d.writes);
  in.at("candidates").get_to(d.candidates);
  // Older stores have the one, newer ones the other.
  d.considered = in.value("considered", static_cast<uint32_t>(d.candidates.size()));
  d.mode = in.value("mode", "");
  d.arm = in.value("arm", "");
  d.proposed = in.value("proposed", "");
  d.eligible = in.value("eligible", d.considered);
  if (in.contains("encoded")) in.at("encoded").get_to(d.encoded);
  if (in.contains("reward")) in.at("reward").get_to(d.reward);
}

namespace {

// Replaces what is not UTF-8 (an argument may be any bytes but must not stop the store).
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class T>
Result<T> parse(const std::string& text, const char* what) {
  try {
    return json::parse(text).get<T>();
  } catch (const json::exception& e) {
    return fail(ErrorCode::kInvalid, std::string("store: ") + what + ": " + e.what());
  }
}

}  // namespace

std::string spec_text(const TaskSpec& spec) {
  return dump(spec);
}
std::string exit_text(const TaskExit& exit) {
  return dump(exit);
}
std::string served_text(const ServedData& served) {
  return dump(served);
}
std::string decision_text(const DecisionRecord& decision) {
  return dump(decision);
}
std::string reward_text(const RewardRecord& reward) {
  return dump(reward);
}
Result<TaskSpec> parse_spec(const std::string& text) {
  return parse<TaskSpec>(text, "task spec");
}
Result<TaskExit> parse_exit(const std::string& text) {
  return parse<TaskExit>(text, "task exit");
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
