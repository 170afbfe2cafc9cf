#include "coordinator/service/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/sysroot.h"
#include "rpc/digest.h"
#include "rpc/protocol.h"

namespace tierpilot {
namespace {

// Of a ratio or of GB/s: beyond, one node would spoil what is averaged over all.
constexpr double kMostPlausible = 1e6;

Figure read_figure(wire::Measure::Reader in) {
  Figure figure;
  if (!in.isValue())
    figure.unavailable = text(in.getUnavailable());
  else if (std::isfinite(in.getValue()))
    figure.value = in.getValue();
  else
    figure.unavailable = "the node gave no finite number";
  return figure;
}

unsigned count(const auto& container) {
  return static_cast<unsigned>(container.size());
}

void write_rank(const RankAssignment& rank, wire::Rank::Builder out) {
  out.setGang(rank.gang);
  out.setRank(rank.rank);
  out.setWorldSize(rank.world_size);
  out.setLocalRank(rank.local_rank);
  out.setLocalWorldSize(rank.local_world_size);
  out.setNodeRank(rank.node_rank);
  out.setMasterAddress(rank.master_address);
  out.setMasterPort(rank.master_port);
  auto units = out.initCpuUnits(count(rank.cpu_units));
  for (unsigned i = 0; i < units.size(); ++i) units.set(i, rank.cpu_units[i]);
  write_texts(rank.gpus, out.initGpus(count(rank.gpus)));
  out.setRestarts(rank.restarts);
}

void write_exit(const TaskExit& exit, wire::Exit::Builder out) {
  out.setHow(task_end_name(exit.how).data());
  out.setCode(exit.code);
  out.setReason(exit.reason);
  out.setCpuUserNs(exit.cpu_user_ns);
  out.setCpuSystemNs(exit.cpu_system_ns);
  out.setMaxResidentBytes(exit.max_resident_bytes);
  out.setWallNs(exit.wall_ns);
  write_figure(exit.io_read_bytes, out.initIoReadBytes());
  write_figure(exit.io_write_bytes, out.initIoWriteBytes());
  auto written = out.initWritten(count(exit.written));
  for (unsigned i = 0; i < written.size(); ++i) {
    written[i].setDataset(exit.written[i].dataset);
    written[i].setVersion(exit.written[i].version);
    written[i].setBytes(exit.written[i].bytes);
    write_digest(written[i].initDigest(), exit.written[i].digest);
  }
  out.setMemoryTier(exit.memory_tier);
  auto memory = out.initMemory(count(exit.memory));
  for (unsigned i = 0; i < memory.size(); ++i) {
    memory[i].setName(exit.memory[i].first);
    write_figure(exit.memory[i].second, memory[i].initValue());
  }
}

void write_served(const ServedData& served, wire::ServedData::Builder out) {
  out.setLocalBytes(served.local_bytes);
  out.setPromotedBytes(served.promoted_bytes);
  out.setFetchedBytes(served.fetched_bytes);
  out.setEvictedBytes(served.evicted_bytes);
  out.setEvictedWrittenBytes(served.evicted_written_bytes);
  out.setLatencyNs(served.latency_ns);
  write_figure(served.evict_gb_per_s, out.initEvictGbPerS());
  out.setReferenceNs(served.reference_ns);
  out.setRunningUnits(served.running_units);
  out.setQueuedNs(served.queued_ns);
  out.setEvictNs(served.evict_ns);
  out.setPromoteNs(served.promote_ns);
  out.setFetchNs(served.fetch_ns);
}

Figure optional_figure(const std::optional<double>& value, const char* reason) {
  return value ? Figure{value, {}} : Figure{std::nullopt, reason};
}

void write_quantiles(const Histogram& histogram, double unit, const char* none,
                     wire::Quantiles::Builder out) {
  const auto quantile = [&](double q) {
    return optional_figure(
        histogram.count() ? std::optional(histogram.quantile(q) / unit) : std::nullopt, none);
  };
  write_figure(quantile(0.5), out.initP50());
  write_figure(quantile(0.99), out.initP99());
}

void write_reward(const RewardRecord& reward, wire::Decision::Reward::Builder out) {
  write_figure(optional_figure(reward.reward, "the data has not been served"), out.initReward());
  out.setUtilisation(reward.utilisation);
  out.setLatencyTerm(reward.latency_term);
  out.setPenaltyTerm(reward.penalty_term);
  out.setLatencyNs(reward.latency_ns);
  out.setReferenceNs(reward.reference_ns);
  out.setEvictedBytes(reward.evicted_bytes);
  write_figure(reward.evict_gb_per_s, out.initEvictGbPerS());
}

}  // namespace

TaskExit read_exit(wire::Exit::Reader in) {
  TaskExit exit;
  exit.code = in.getCode();
  exit.reason = text(in.getReason());
  const auto how = parse_task_end(text(in.getHow()));
  exit.how = how.value_or(TaskEnd::kUnknown);
  if (!how)
    exit.reason = fmt::format("it ended as '{}', which this coordinator does not know: {}",
                              text(in.getHow()), exit.reason);
  exit.cpu_user_ns = in.getCpuUserNs();
  exit.cpu_system_ns = in.getCpuSystemNs();
  exit.max_resident_bytes = in.getMaxResidentBytes();
  exit.wall_ns = in.getWallNs();
  exit.io_read_bytes = read_figure(in.getIoReadBytes());
  exit.io_write_bytes = read_figure(in.getIoWriteBytes());
  for (const auto replica : in.getWritten())
    exit.written.push_back({text(replica.getDataset()), replica.getVersion(), replica.getBytes(),
                            read_digest(replica.getDigest())});
  exit.memory_tier = text(in.getMemoryTier());
  exit.node_fault = in.getNodeFault();
  // What a node may make the store keep for each task.
  constexpr unsigned kMostFigures = 64;
  for (const auto figure : in.getMemory())
    if (exit.memory.size() < kMostFigures)
      exit.memory.emplace_back(text(figure.getName()), read_figure(figure.getValue()));
  return exit;
}

JobPoint read_job_report(wire::JobReport::Reader in) {
  constexpr size_t kMostMeasures = 32;
  JobPoint point{.attempt = in.getAttempt().getAttempt(),
                 .at_ms = in.getAtMs(),
                 .iteration = in.getIteration(),
                 .iterations = in.getIterations(),
                 .samples = in.getSamples(),
                 .loss = read_figure(in.getLoss()),
                 .measures = {},
                 .cpu_ns = in.getCpuNs(),
                 .milli_units = in.getMilliUnits(),
                 .waited_ns = in.getWaitedNs()};
  for (const auto measure : in.getMeasures())
    if (point.measures.size() < kMostMeasures)
      point.measures.emplace_back(text(measure.getName()), read_figure(measure.getValue()));
  return point;
}

void write_progress(uint64_t task, const std::vector<JobPoint>& points, wire::Task::Builder out) {
  auto series = out.initProgress(count(points));
  for (unsigned i = 0; i < series.size(); ++i) {
    const auto& point = points[i];
    write_attempt({task, point.attempt}, series[i].initAttempt());
    series[i].setAtMs(point.at_ms);
    series[i].setIteration(point.iteration);
    series[i].setIterations(point.iterations);
    series[i].setSamples(point.samples);
    series[i].setCpuNs(point.cpu_ns);
    series[i].setMilliUnits(point.milli_units);
    write_figure(point.loss, series[i].initLoss());
    auto measures = series[i].initMeasures(count(point.measures));
    for (unsigned k = 0; k < measures.size(); ++k) {
      measures[k].setName(point.measures[k].first);
      write_figure(point.measures[k].second, measures[k].initValue());
    }
  }
}

ServedData read_served(wire::ServedData::Reader in) {
  ServedData served;
  served.local_bytes = in.getLocalBytes();
  served.promoted_bytes = in.getPromotedBytes();
  served.fetched_bytes = in.getFetchedBytes();
  served.evicted_bytes = in.getEvictedBytes();
  served.evicted_written_bytes = in.getEvictedWrittenBytes();
  served.latency_ns = in.getLatencyNs();
  served.evict_gb_per_s = read_figure(in.getEvictGbPerS());
  served.reference_ns = in.getReferenceNs();
  served.running_units = in.getRunningUnits();
  served.queued_ns = in.getQueuedNs();
  served.evict_ns = in.getEvictNs();
  served.promote_ns = in.getPromoteNs();
  served.fetch_ns = in.getFetchNs();
  return served;
}

NodeRates read_rates(capnp::List<wire::Tier>::Reader tiers) {
  const auto known = [](wire::Measure::Reader measure) {
    const double gb_per_s = measure.isValue() ? measure.getValue() : 0;
    return gb_per_s > 0 && gb_per_s < kMostPlausible ? gb_per_s * 1e9 : 0;
  };
  NodeRates rates;
  for (const auto tier : tiers) {
    if (tier.getRole() == "fast") rates.fast_bytes_per_s = known(tier.getReadGbPerS());
    // Moves between the two are measured as the slow one's.
    if (tier.getRole() != "slow") continue;
    rates.evict_bytes_per_s = known(tier.getEvictGbPerS());
    rates.promote_bytes_per_s = known(tier.getPromoteGbPerS());
  }
  return rates;
}

NodeFacts read_facts(wire::NodeInfo::Reader in) {
  NodeFacts facts;
  facts.name = text(in.getName());
  facts.instance = in.getInstance();
  facts.units = in.getUnits();
  facts.memory_bytes = in.getMemoryBytes();
  facts.fast_budget_bytes = in.getFastBudgetBytes();
  facts.data_address = text(in.getDataAddress());
  const auto ratio = in.getInt32ToFloat();
  if (ratio.isValue() && ratio.getValue() > 0 && ratio.getValue() < kMostPlausible)
    facts.int32_to_float = ratio.getValue();
  facts.rates = read_rates(in.getTiers());
  facts.runs_gangs = read_program(in.getProgram(), "tierpilotd").can(kGangFeature);
  facts.takes_checkpoints = read_program(in.getProgram(), "tierpilotd").can(kCheckpointFeature);
  if (const auto cpus = parse_id_list(text(in.getCpus())))
    facts.cpus = static_cast<uint32_t>(cpus->size());
  constexpr size_t kMostSharedUnits = 1024;
  for (const auto unit : in.getSharedUnits())
    if (facts.shared_units.size() < kMostSharedUnits && unit.getCores() > 0 &&
        unit.getCores() < kMostPlausible)
      facts.shared_units.push_back({text(unit.getType()), unit.getCores(), unit.getMemoryBytes()});
  constexpr size_t kMostGpus = 1024;
  for (const auto gpu : in.getGpus())
    if (facts.gpus.size() < kMostGpus) facts.gpus.push_back(text(gpu.getUuid()));
  constexpr size_t kMostPredecessors = 256;
  for (const uint64_t instance : in.getPredecessors())
    if (facts.predecessors.size() < kMostPredecessors) facts.predecessors.push_back(instance);
  return facts;
}

ReplicaState read_replica(wire::Replica::Reader in) {
  return {in.getVersion(), in.getBytes(), in.getInFast(),
          in.getInSlow(),  in.getHome(),  read_digest(in.getDigest()),
          in.getDamaged()};
}

Result<DatasetSource> read_source(wire::DatasetSource::Reader in) {
  switch (in.which()) {
    case wire::DatasetSource::FILE:
      return FileSource{text(in.getFile())};
    case wire::DatasetSource::ZERO_BYTES:
      return ZeroSource{in.getZeroBytes()};
    case wire::DatasetSource::RANDOM:
      return RandomSource{in.getRandom().getBytes(), in.getRandom().getSeed()};
  }
  return fail(ErrorCode::kInvalid, "the source of the dataset is of a kind unknown here");
}

void write_figure(const Figure& figure, wire::Measure::Builder out) {
  if (figure.value)
    out.setValue(*figure.value);
  else
    out.setUnavailable(figure.unavailable);
}

void write_source(const DatasetSource& source, wire::DatasetSource::Builder out) {
  if (const auto* file = std::get_if<FileSource>(&source)) {
    out.setFile(file->path);
  } else if (const auto* zero = std::get_if<ZeroSource>(&source)) {
    out.setZeroBytes(zero->bytes);
  } else {
    const auto& random = std::get<RandomSource>(source);
    auto group = out.initRandom();
    group.setBytes(random.bytes);
    group.setSeed(random.seed);
  }
}

void write_assignment(const Assignment& assignment, wire::Assignment::Builder out) {
  const auto& spec = assignment.spec;
  write_attempt(assignment.attempt, out.initAttempt());
  write_texts(spec.argv, out.initArgv(count(spec.argv)));
  write_env(spec.env, out.initEnv(count(spec.env)));
  out.setUnits(spec.units);
  out.setMaxUnits(spec.max_units);
  out.setMemoryLimitBytes(spec.memory_bytes);
  out.setTimeLimitMs(spec.time_limit_ms);
  out.setName(spec.name);
  out.setMemoryTier(spec.memory_tier);
  out.setReckoning(assignment.reckoning);
  out.setPlaceS(assignment.place_s);
  if (assignment.rank) write_rank(*assignment.rank, out.initRank());
  if (assignment.share) {
    auto share = out.initShare();
    share.setUnit(assignment.share->unit);
    share.setMilli(assignment.share->milli);
  }
  auto datasets = out.initDatasets(count(assignment.datasets));
  for (unsigned i = 0; i < datasets.size(); ++i) write_need(assignment.datasets[i], datasets[i]);
}

void write_task(const Task& task, wire::Task::Builder out) {
  out.setId(task.id);
  out.setJob(task.job);
  out.setName(task.spec.name);
  out.setState(task_state_name(task.state));
  out.setReason(task.reason);
  out.setNode(task.node);
  out.setAttempt(task.attempt);
  out.setSubmittedMs(task.submitted_ms);
  out.setStartedMs(task.started_ms);
  out.setFinishedMs(task.finished_ms);
  out.setUser(task.user);
  out.setPolicy(task.policy);
  write_spec(task.spec, out.initSpec());
  if (task.exit) write_exit(*task.exit, out.initExit());
  if (task.served) write_served(*task.served, out.initServed());
  out.setRestarts(task.restarts);
  if (!task.rank) return;
  out.setGang(task.rank->gang);
  out.setRank(task.rank->rank);
  out.setPid(task.rank->pid);
  auto units = out.initCpuUnits(count(task.rank->cpu_units));
  for (unsigned i = 0; i < units.size(); ++i) units.set(i, task.rank->cpu_units[i]);
  write_texts(task.rank->gpus, out.initGpus(count(task.rank->gpus)));
}

void write_kept_back(const KeptBack& kept, wire::Task::Builder out) {
  out.setReason(kept.reason);
  auto to = out.initKeptBack();
  to.setNode(kept.node);
  to.setSinceMs(kept.since_ms);
  to.setUntilMs(kept.until_ms);
}

void write_decision(const DecisionRecord& decision, wire::Decision::Builder out) {
  out.setPolicy(decision.policy);
  out.setNode(decision.node);
  out.setExplored(decision.explored);
  out.setFallback(decision.fallback);
  out.setReason(decision.reason);
  out.setDecideNs(static_cast<uint64_t>(std::max<int64_t>(decision.decide_ns, 0)));
  out.setWeightsVersion(decision.weights_version);
  out.setAtMs(decision.at_ms);
  out.setConsidered(decision.considered);
  out.setEligible(decision.eligible);
  out.setMode(decision.mode);
  out.setArm(decision.arm);
  out.setProposed(decision.proposed);
  out.setKeptBackFor(decision.kept_back_for);
  out.setKeptBackMs(decision.kept_back_ms);
  auto candidates = out.initCandidates(count(decision.candidates));
  for (unsigned i = 0; i < candidates.size(); ++i) {
    const auto& from = decision.candidates[i];
    candidates[i].setNode(from.node);
    candidates[i].setEligible(from.eligible);
    write_figure(
        optional_figure(from.q, from.eligible ? "this policy did not value it" : "not a candidate"),
        candidates[i].initQ());
    candidates[i].setFreeFastBytes(from.free_fast_bytes);
    candidates[i].setHeldFastBytes(from.held_fast_bytes);
    candidates[i].setHeldSlowBytes(from.held_slow_bytes);
    candidates[i].setAssignedUnits(from.assigned_units);
    candidates[i].setUnits(from.units);
  }
  auto observation = out.initObservation();
  observation.setUtilisation(decision.utilisation);
  observation.setOperations(decision.operations);
  observation.setDataBytes(decision.data_bytes);
  observation.setWrites(decision.writes);
  auto encoded = out.initEncoded(count(decision.encoded));
  for (unsigned i = 0; i < encoded.size(); ++i) encoded.set(i, decision.encoded[i]);
  write_reward(decision.reward, out.initReward());
}

void write_score(const Scoreboard::PolicyScore& score, wire::PolicyEntry::Builder out) {
  out.setDecisions(score.decisions);
  out.setFallbacks(score.fallbacks);
  Figure mean{std::nullopt, "no reward was measured yet"};
  if (score.rewards) mean = {score.reward_sum / static_cast<double>(score.rewards), {}};
  write_figure(mean, out.initRewardMean());
  write_quantiles(score.decide_ns, 1e3, "no decision was taken yet", out.initDecisionUs());
  out.setKeptBack(score.kept_back_ns.count());
  out.setKeptBackReached(score.kept_back_reached);
  write_quantiles(score.kept_back_ns, 1e6, "no task was kept back yet", out.initKeptBackMs());
}

void write_share(const CoreShare& share, const std::string& allocator,
                 wire::CoreShare::Builder out) {
  out.setTask(share.task);
  out.setName(share.name);
  out.setUnits(share.units);
  out.setCores(share.cores);
  out.setSinceMs(share.since_ms);
  out.setAllocator(allocator);
  out.setReason(share.reason);
  const auto write = [](std::optional<double> value, const char* why, wire::Measure::Builder to) {
    write_figure(optional_figure(value, why), to);
  };
  write(share.loss_left, "its loss has not changed yet", out.initLossLeft());
  constexpr const char* kUnknown = "its loss cannot be foretold yet";
  write(share.gain, kUnknown, out.initGain());
  write(share.gain_of_one_more, kUnknown, out.initGainOfOneMore());
}

void write_unit_share(const ShownShare& share, const std::string& policy,
                      wire::UnitShare::Builder out) {
  const auto write = [](std::optional<double> value, const char* why, wire::Measure::Builder to) {
    write_figure(optional_figure(value, why), to);
  };
  const auto& predicted = share.forecast.predicted;
  out.setUnit(share.given.unit);
  out.setMilli(share.given.milli);
  out.setMemoryBytes(share.given.memory_bytes);
  out.setPredictedBy(share.forecast.by);
  out.setPredictedMilli(predicted.milli);
  write(predicted.run_s > 0 ? std::optional(predicted.run_s) : std::nullopt, "nothing tells it",
        out.initPredictedS());
  write(share.used_milli, "it has not been measured yet", out.initUsedMilli());
  write(share.left_s, "it cannot be told", out.initLeftS());
  write(share.promise_left_s, "there is no promise", out.initPromiseLeftS());
  out.setPolicy(policy);
  auto neighbours = out.initNeighbours(count(share.neighbours));
  for (unsigned i = 0; i < neighbours.size(); ++i) neighbours.set(i, share.neighbours[i]);
  out.setPreemptions(share.given.preemptions);
}

}  // namespace tierpilot
