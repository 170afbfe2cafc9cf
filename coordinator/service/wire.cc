#include "coordinator/service/wire.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/utf8.h"
#include "coordinator/service/access.h"
#include "rpc/digest.h"
#include "rpc/protocol.h"

namespace tierpilot {
namespace {

void write_rank(const RankAssignment& rank, wire::Rank::Builder out) {
  out.setGang(rank.gang);
  out.setRank(rank.rank);
  out.setWorldSize(rank.world_size);
  out.setLocalRank(rank.place.local_rank);
  out.setLocalWorldSize(rank.place.local_world_size);
  out.setNodeRank(rank.place.node_rank);
  out.setMasterAddress(rank.master_address);
  out.setMasterPort(rank.master_port);
  auto units = out.initCpuUnits(count(rank.place.cpu_units));
  for (unsigned i = 0; i < units.size(); ++i) units.set(i, rank.place.cpu_units[i]);
  write_texts(rank.place.gpus, out.initGpus(count(rank.place.gpus)));
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
  write_figure(
      optional_figure(reward.reward, reward.reference_ns == 0
                                         ? "how fast the node's fast tier is was not measured"
                                         : "what was measured gives none"),
      out.initReward());
  out.setUtilisation(reward.utilisation);
  out.setLatencyTerm(reward.latency_term);
  out.setPenaltyTerm(reward.penalty_term);
  out.setLatencyNs(reward.latency_ns);
  out.setReferenceNs(reward.reference_ns);
  out.setEvictedBytes(reward.evicted_bytes);
  write_figure(reward.evict_gb_per_s, out.initEvictGbPerS());
}

}  // namespace

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
    series[i].setWaitedNs(point.waited_ns);
    series[i].setTakesCheckpoints(point.takes_checkpoints);
    write_figure(point.loss, series[i].initLoss());
    auto measures = series[i].initMeasures(count(point.measures));
    for (unsigned k = 0; k < measures.size(); ++k) {
      measures[k].setName(point.measures[k].first);
      write_figure(point.measures[k].second, measures[k].initValue());
    }
  }
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
  out.setMemoryLimitBytes(spec.node_memory_bytes());
  out.setSwapRoomBytes(spec.swap_room_bytes);
  out.setTimeLimitMs(spec.time_limit_ms);
  out.setName(spec.name);
  out.setMemoryTier(spec.memory_tier);
  out.setSubmitter(account_name(assignment.user));
  out.setReckoning(assignment.reckoning);
  out.setPlaceS(assignment.place_s);
  if (assignment.rank) write_rank(*assignment.rank, out.initRank());
  if (assignment.share) {
    auto share = out.initShare();
    share.setUnit(assignment.share->unit);
    share.setMilli(assignment.share->milli);
    share.setMostMilli(assignment.share->predicted_milli);
    // Of cores, and where it is only predicted, it limits nothing; what swaps keeps to it all the
    // same.
    if ((spec.has_gpu_share() && spec.memory_bytes > 0) || spec.swap_room_bytes > 0)
      share.setMemoryBytes(assignment.share->memory_bytes);
  }
  auto datasets = out.initDatasets(count(assignment.datasets));
  for (unsigned i = 0; i < datasets.size(); ++i) write_need(assignment.datasets[i], datasets[i]);
}

// All but what it was submitted with.
void write_what_became(const Task& task, wire::Task::Builder out) {
  out.setId(task.id);
  out.setSubmission(task.submission);
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

void write_task(const Task& task, wire::Task::Builder out) {
  write_what_became(task, out);
  write_spec(task.spec, out.initSpec());
}

void write_ranks(std::vector<Task> ranks, wire::Task::Builder gang) {
  constexpr size_t kMostReason = 100;
  auto list = gang.initRanks(count(ranks));
  for (unsigned i = 0; i < list.size(); ++i) {
    auto& rank = ranks[i];
    rank.served.reset();
    rank.reason = beginning(std::move(rank.reason), kMostReason);
    if (rank.exit) {
      rank.exit->reason = beginning(std::move(rank.exit->reason), kMostReason);
      rank.exit->memory.clear();
    }
    write_what_became(rank, list[i]);
  }
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
  if (decision.mode) out.setMode(policy_mode_name(*decision.mode));
  if (decision.arm) out.setArm(arm_name(*decision.arm));
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
    candidates[i].setRanks(from.ranks);
  }
  auto observation = out.initObservation();
  observation.setUtilisation(decision.utilisation);
  observation.setOperations(decision.operations);
  observation.setDataBytes(decision.data_bytes);
  observation.setWrites(decision.writes);
  auto encoded = out.initEncoded(count(decision.encoded));
  for (unsigned i = 0; i < encoded.size(); ++i) encoded.set(i, decision.encoded[i]);
  if (decision.reward.latency_ns > 0 || decision.reward.reward)
    write_reward(decision.reward, out.initReward());
  auto looks = out.initUnits(count(decision.unit_looks));
  write_unit_looks(decision.unit_looks, looks);
  if (looks.size() > 0) looks[0].setChosen(true);
  if (!decision.gang) return;
  auto gang = out.initGang();
  gang.setExpectedH(decision.gang->expected_h);
  gang.setHeuristic(decision.gang->heuristic);
  gang.setHeuristicH(decision.gang->heuristic_h);
  gang.setStanding(decision.gang->standing);
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
}  // namespace tierpilot
