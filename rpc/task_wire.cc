#include "rpc/task_wire.h"

#include <fmt/format.h>

namespace tierpilot {
namespace {

unsigned count(const auto& container) {
  return static_cast<unsigned>(container.size());
}

Result<GangSpec> read_gang(wire::Gang::Reader from) {
  const auto engine = parse_engine(text(from.getEngine()));
  if (!engine)
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no engine: cpu or gpu", text(from.getEngine())));
  return GangSpec{.ranks = from.getRanks(),
                  .engine = *engine,
                  .gpus_per_rank = from.getGpusPerRank(),
                  .ranks_per_node_min = from.getRanksPerNodeMin(),
                  .ranks_per_node_max = from.getRanksPerNodeMax(),
                  .estimate_ms = from.getEstimateMs(),
                  .max_restarts = from.getMaxRestarts(),
                  .start_within_ms = from.getStartWithinMs(),
                  .max_ranks = from.getMaxRanks()};
}

void write_gang(const GangSpec& from, wire::Gang::Builder to) {
  to.setRanks(from.ranks);
  to.setEngine(engine_name(from.engine).data());
  to.setGpusPerRank(from.gpus_per_rank);
  to.setRanksPerNodeMin(from.ranks_per_node_min);
  to.setRanksPerNodeMax(from.ranks_per_node_max);
  to.setEstimateMs(from.estimate_ms);
  to.setMaxRestarts(from.max_restarts);
  to.setStartWithinMs(from.start_within_ms);
  to.setMaxRanks(from.max_ranks);
}

constexpr const char* kSensitive = "latency-sensitive";
constexpr const char* kBestEffort = "best-effort";

Result<ShareSpec> read_share(wire::Share::Reader from) {
  const auto name = text(from.getClass());
  if (name != kSensitive && name != kBestEffort)
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no class: {} or {}", name, kSensitive, kBestEffort));
  const auto engine = parse_engine(from.getEngine().size() == 0 ? "cpu" : text(from.getEngine()));
  if (!engine)
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no engine: cpu or gpu", text(from.getEngine())));
  return ShareSpec{.wanted = true,
                   .engine = *engine,
                   .milli = from.getMilli(),
                   .latency_sensitive = name == kSensitive,
                   .promise_ms = from.getPromiseMs(),
                   .promise_on_trial = from.getPromiseOnTrial(),
                   .estimate_ms = from.getEstimateMs(),
                   .model_card = text(from.getModelCard())};
}

void write_share(const ShareSpec& from, wire::Share::Builder to) {
  to.setMilli(from.milli);
  to.setClass(from.latency_sensitive ? kSensitive : kBestEffort);
  to.setPromiseMs(from.promise_ms);
  to.setPromiseOnTrial(from.promise_on_trial);
  to.setEstimateMs(from.estimate_ms);
  to.setModelCard(from.model_card);
  to.setEngine(engine_name(from.engine).data());
}

TrainingGoal read_training_goal(wire::TrainingGoal::Reader from) {
  return {.weight = from.getWeight(),
          .measure = text(from.getMeasure()),
          .rises = from.getRises(),
          .goal = from.getGoal(),
          .deadline_ms = from.getDeadlineMs()};
}

void write_training_goal(const TrainingGoal& from, wire::TrainingGoal::Builder to) {
  to.setWeight(from.weight);
  to.setMeasure(from.measure);
  to.setRises(from.rises);
  to.setGoal(from.goal);
  to.setDeadlineMs(from.deadline_ms);
}

}  // namespace

std::string text(capnp::Text::Reader from) {
  return {from.begin(), from.size()};
}

std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from) {
  std::vector<std::string> texts;
  for (const auto item : from) texts.push_back(text(item));
  return texts;
}

void write_texts(const std::vector<std::string>& from, capnp::List<capnp::Text>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) to.set(i, from[i]);
}

Environment read_env(capnp::List<wire::EnvVar>::Reader from) {
  Environment env;
  for (const auto variable : from)
    env.emplace_back(text(variable.getName()), text(variable.getValue()));
  return env;
}

void write_env(const Environment& from, capnp::List<wire::EnvVar>::Builder to) {
  for (unsigned i = 0; i < to.size(); ++i) {
    to[i].setName(from[i].first);
    to[i].setValue(from[i].second);
  }
}

AttemptId read_attempt(wire::Attempt::Reader from) {
  return {from.getTask(), from.getAttempt()};
}

void write_attempt(AttemptId from, wire::Attempt::Builder to) {
  to.setTask(from.task);
  to.setAttempt(from.attempt);
}

Result<TaskSpec> read_spec(wire::TaskSpec::Reader from) {
  TaskSpec spec;
  spec.name = text(from.getName());
  spec.argv = read_texts(from.getArgv());
  spec.env = read_env(from.getEnv());
  for (const auto use : from.getDatasets())
    spec.datasets.push_back({text(use.getDataset()), use.getWrite()});
  spec.units = from.getUnits();
  spec.memory_bytes = from.getMemoryBytes();
  spec.swap_room_bytes = from.getSwapRoomBytes();
  spec.float_operations = from.getFloatOperations();
  spec.int_operations = from.getIntOperations();
  spec.time_limit_ms = from.getTimeLimitMs();
  spec.after = read_texts(from.getAfter());
  spec.node = text(from.getNode());
  spec.memory_tier = text(from.getMemoryTier());
  spec.priority = from.getPriority();
  spec.max_units = from.getMaxUnits();
  const auto refuse = [&](const Error& error) {
    return fail(error.code, fmt::format("task '{}': {}", spec.name, error.message));
  };
  if (from.hasShare()) {
    auto share = read_share(from.getShare());
    if (!share) return refuse(share.error());
    spec.share = std::move(*share);
  }
  if (from.hasQuality()) spec.training_goal = read_training_goal(from.getQuality());
  if (!from.hasGang()) return spec;
  auto gang = read_gang(from.getGang());
  if (!gang) return refuse(gang.error());
  spec.gang = *gang;
  return spec;
}

void write_spec(const TaskSpec& from, wire::TaskSpec::Builder to) {
  to.setName(from.name);
  write_texts(from.argv, to.initArgv(count(from.argv)));
  write_env(from.env, to.initEnv(count(from.env)));
  auto datasets = to.initDatasets(count(from.datasets));
  for (unsigned i = 0; i < datasets.size(); ++i) {
    datasets[i].setDataset(from.datasets[i].dataset);
    datasets[i].setWrite(from.datasets[i].write);
  }
  to.setUnits(from.units);
  to.setMemoryBytes(from.memory_bytes);
  to.setSwapRoomBytes(from.swap_room_bytes);
  to.setFloatOperations(from.float_operations);
  to.setIntOperations(from.int_operations);
  to.setTimeLimitMs(from.time_limit_ms);
  write_texts(from.after, to.initAfter(count(from.after)));
  to.setNode(from.node);
  to.setMemoryTier(from.memory_tier);
  to.setPriority(from.priority);
  to.setMaxUnits(from.max_units);
  if (from.is_gang()) write_gang(from.gang, to.initGang());
  if (from.training_goal != TrainingGoal{})
    write_training_goal(from.training_goal, to.initQuality());
  if (from.is_shared()) write_share(from.share, to.initShare());
}

}  // namespace tierpilot
