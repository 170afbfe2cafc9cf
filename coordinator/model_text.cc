// The writing side of model_json.h. Members stand in alphabetical order, as nlohmann has them: the
// digests by which a repeated submit is known are taken of these texts.
#include <algorithm>

#include "coordinator/json_writer.h"
#include "coordinator/model_json.h"

namespace tierpilot {

// Not in an unnamed namespace, where JsonWriter would not find them.

static void write_json(JsonWriter& out, const Figure& figure) {
  if (figure.value)
    out.write(*figure.value);
  else
    out.write(figure.unavailable);
}

static void write_json(JsonWriter& out, const DatasetUse& use) {
  out.object([&] { out.put("dataset", use.dataset).put("write", use.write); });
}

static void write_json(JsonWriter& out, const DatasetVersion& version) {
  out.object([&] {
    out.put("bytes", version.bytes).put("dataset", version.dataset);
    if (version.digest.known()) out.put("digest", to_string(version.digest));
    out.put("version", version.version);
  });
}

// One member of all candidates: an object for each would say every name sixteen times.
template <class Member>
struct Column {
  const std::vector<CandidateRecord>& candidates;
  Member CandidateRecord::*member;
};

template <class Member>
static void write_json(JsonWriter& out, const Column<Member>& column) {
  out.array(column.candidates,
            [&](const CandidateRecord& each) -> const Member& { return each.*column.member; });
}

struct CandidateColumns {
  const std::vector<CandidateRecord>& of;
};

static void write_json(JsonWriter& out, const CandidateColumns& candidates) {
  out.object([&] {
    const auto put = [&](const char* name, auto member) {
      out.put(name, Column{candidates.of, member});
    };
    put("assigned_units", &CandidateRecord::assigned_units);
    put("eligible", &CandidateRecord::eligible);
    put("free_fast_bytes", &CandidateRecord::free_fast_bytes);
    put("held_fast_bytes", &CandidateRecord::held_fast_bytes);
    put("held_slow_bytes", &CandidateRecord::held_slow_bytes);
    put("node", &CandidateRecord::node);
    put("q", &CandidateRecord::q);
    // Most decisions are about one task.
    if (std::any_of(candidates.of.begin(), candidates.of.end(),
                    [](const auto& candidate) { return candidate.ranks > 0; }))
      put("ranks", &CandidateRecord::ranks);
    put("units", &CandidateRecord::units);
  });
}

static void write_json(JsonWriter& out, const UnitLook& look) {
  out.object([&] {
    out.put("free_memory_bytes", look.free_memory_bytes).put("free_milli", look.free_milli);
    if (!look.gpu.empty()) out.put("gpu", look.gpu);
    out.put("node", look.node);
    if (!look.refused.empty()) out.put("refused", look.refused);
    out.put("tasks", look.tasks).put("unit", look.unit);
  });
}

static void write_json(JsonWriter& out, const GangDecision& gang) {
  out.object([&] {
    out.put("expected_h", gang.expected_h).put("heuristic", gang.heuristic);
    out.put("heuristic_h", gang.heuristic_h).put("standing", gang.standing);
  });
}

// What a program is told may be any bytes.
struct Arguments {
  const std::vector<std::string>& of;
};

static void write_json(JsonWriter& out, const Arguments& arguments) {
  out.array(arguments.of, [](const std::string& each) { return ExactBytes{each}; });
}

struct Environment {
  const std::vector<std::pair<std::string, std::string>>& of;
};

static void write_json(JsonWriter& out, const Environment& environment) {
  out.array(environment.of, [](const auto& variable) {
    return std::pair(ExactBytes{variable.first}, ExactBytes{variable.second});
  });
}

static void write_json(JsonWriter& out, const GangSpec& gang) {
  out.object([&] {
    out.put("engine", std::string(engine_name(gang.engine))).put("estimate_ms", gang.estimate_ms);
    out.put("gpus_per_rank", gang.gpus_per_rank);
    if (gang.max_ranks > 0) out.put("max_ranks", gang.max_ranks);
    out.put("max_restarts", gang.max_restarts);
    out.put("ranks", gang.ranks).put("ranks_per_node_max", gang.ranks_per_node_max);
    out.put("ranks_per_node_min", gang.ranks_per_node_min);
    out.put("start_within_ms", gang.start_within_ms);
  });
}

static void write_json(JsonWriter& out, const ShareSpec& share) {
  out.object([&] {
    if (share.engine != Engine::kCpu) out.put("engine", std::string(engine_name(share.engine)));
    out.put("estimate_ms", share.estimate_ms).put("latency_sensitive", share.latency_sensitive);
    out.put("milli", share.milli).put("model_card", share.model_card);
    out.put("promise_ms", share.promise_ms);
    if (share.promise_on_trial) out.put("promise_on_trial", true);
  });
}

static void write_json(JsonWriter& out, const TrainingGoal& goal) {
  out.object([&] {
    out.put("deadline_ms", goal.deadline_ms).put("goal", goal.goal);
    out.put("measure", goal.measure).put("rises", goal.rises);
    out.put("weight", goal.weight);
  });
}

std::string spec_text(const TaskSpec& spec) {
  JsonWriter out;
  out.object([&] {
    out.put("after", spec.after).put("argv", Arguments{spec.argv}).put("datasets", spec.datasets);
    out.put("env", Environment{spec.env}).put("float_operations", spec.float_operations);
    if (spec.is_gang()) out.put("gang", spec.gang);
    out.put("int_operations", spec.int_operations);
    if (spec.is_elastic()) out.put("max_units", spec.max_units);
    out.put("memory_bytes", spec.memory_bytes).put("memory_tier", spec.memory_tier);
    out.put("name", spec.name).put("node", spec.node);
    if (spec.priority != 0) out.put("priority", spec.priority);
    // The older word: the text of a stored task is never another one.
    if (spec.training_goal != TrainingGoal{}) out.put("quality", spec.training_goal);
    if (spec.is_shared()) out.put("share", spec.share);
    if (spec.swap_room_bytes > 0) out.put("swap_room_bytes", spec.swap_room_bytes);
    out.put("time_limit_ms", spec.time_limit_ms).put("units", spec.units);
  });
  return out.take();
}

std::string exit_text(const TaskExit& exit) {
  JsonWriter out;
  out.object([&] {
    out.put("code", exit.code).put("cpu_system_ns", exit.cpu_system_ns);
    out.put("cpu_user_ns", exit.cpu_user_ns).put("how", std::string(task_end_name(exit.how)));
    out.put("io_read_bytes", exit.io_read_bytes).put("io_write_bytes", exit.io_write_bytes);
    out.put("max_resident_bytes", exit.max_resident_bytes).put("memory", exit.memory);
    out.put("memory_tier", exit.memory_tier);
    if (exit.node_fault) out.put("node_fault", exit.node_fault);
    out.put("reason", exit.reason);
    out.put("wall_ns", exit.wall_ns).put("written", exit.written);
  });
  return out.take();
}

std::string rank_text(const RankOf& rank) {
  JsonWriter out;
  out.object([&] {
    out.put("cpu_units", rank.cpu_units).put("gang", rank.gang).put("gpus", rank.gpus);
    out.put("pid", rank.pid).put("rank", rank.rank);
  });
  return out.take();
}

std::string share_text(const UnitShare& share) {
  JsonWriter out;
  out.object([&] {
    if (!share.gpu.empty()) out.put("gpu", share.gpu);
    out.put("memory_bytes", share.memory_bytes).put("milli", share.milli);
    out.put("predicted_by", share.predicted_by).put("predicted_milli", share.predicted_milli);
    out.put("predicted_s", share.predicted_s).put("preemptions", share.preemptions);
    if (share.trial_end != TrialEnd::kNone)
      out.put("trial_end", std::string(trial_end_name(share.trial_end)));
    out.put("unit", share.unit).put("used_milli", share.used_milli);
  });
  return out.take();
}

std::string served_text(const ServedData& served) {
  JsonWriter out;
  out.object([&] {
    out.put("evict_gb_per_s", served.evict_gb_per_s).put("evict_ns", served.evict_ns);
    out.put("evicted_bytes", served.evicted_bytes);
    out.put("evicted_written_bytes", served.evicted_written_bytes).put("fetch_ns", served.fetch_ns);
    out.put("fetched_bytes", served.fetched_bytes).put("latency_ns", served.latency_ns);
    out.put("local_bytes", served.local_bytes).put("promote_ns", served.promote_ns);
    out.put("promoted_bytes", served.promoted_bytes).put("queued_ns", served.queued_ns);
    out.put("reference_ns", served.reference_ns).put("running_units", served.running_units);
  });
  return out.take();
}

template <class Enum>
static std::string_view word_of(std::optional<Enum> value, const char* (*name)(Enum)) {
  return value ? name(*value) : "";
}

std::string decision_text(const DecisionRecord& decision) {
  JsonWriter out;
  out.object([&] {
    out.put("arm", word_of(decision.arm, arm_name)).put("at_ms", decision.at_ms);
    out.put("attempt", decision.attempt.attempt);
    out.put("candidates", CandidateColumns{decision.candidates});
    out.put("considered", decision.considered).put("data_bytes", decision.data_bytes);
    out.put("decide_ns", decision.decide_ns).put("eligible", decision.eligible);
    out.put("explored", decision.explored).put("fallback", decision.fallback);
    if (decision.gang) out.put("gang", *decision.gang);
    if (!decision.kept_back_for.empty())
      out.put("kept_back_for", decision.kept_back_for).put("kept_back_ms", decision.kept_back_ms);
    out.put("mode", word_of(decision.mode, policy_mode_name)).put("node", decision.node);
    out.put("operations", decision.operations).put("policy", decision.policy);
    out.put("proposed", decision.proposed).put("reason", decision.reason);
    out.put("task", decision.attempt.task);
    if (!decision.unit_looks.empty()) out.put("unit_looks", decision.unit_looks);
    out.put("utilisation", decision.utilisation);
    out.put("weights_version", decision.weights_version).put("writes", decision.writes);
  });
  return out.take();
}

std::string reward_text(const RewardRecord& reward) {
  JsonWriter out;
  out.object([&] {
    out.put("evict_gb_per_s", reward.evict_gb_per_s).put("evicted_bytes", reward.evicted_bytes);
    out.put("latency_ns", reward.latency_ns).put("latency_term", reward.latency_term);
    out.put("penalty_term", reward.penalty_term).put("reference_ns", reward.reference_ns);
    out.put("reward", reward.reward).put("utilisation", reward.utilisation);
  });
  return out.take();
}

}  // namespace tierpilot
