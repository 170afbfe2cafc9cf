#include "daemon/agent/link/wire.h"

#include <fmt/format.h>

#include <set>

#include "rpc/digest.h"

namespace tierpilot::agent {
namespace {

constexpr uint32_t kMaxItems = 4096;

void write_served(wire::ServedData::Builder to, const ServedData& from) {
  to.setLocalBytes(from.pool.local_bytes);
  to.setPromotedBytes(from.pool.promoted_bytes);
  to.setFetchedBytes(from.pool.fetched_bytes);
  to.setEvictedBytes(from.pool.evicted_bytes);
  to.setEvictedWrittenBytes(from.pool.evicted_written_bytes);
  to.setLatencyNs(from.latency_ns);
  write_measure(to.initEvictGbPerS(), from.evict_gb_per_s);
  to.setReferenceNs(from.reference_ns);
  to.setRunningUnits(from.running_units);
  to.setQueuedNs(static_cast<uint64_t>(from.pool.queued_ns));
  to.setEvictNs(static_cast<uint64_t>(from.pool.evict_ns));
  to.setPromoteNs(static_cast<uint64_t>(from.pool.promote_ns));
  to.setFetchNs(static_cast<uint64_t>(from.pool.fetch_ns));
}

Result<double> measure(std::optional<uint64_t> bytes) {
  if (bytes) return static_cast<double>(*bytes);
  return fail(ErrorCode::kUnavailable, "not accounted by this kernel");
}

void write_process(wire::Exit::Builder to, const ProcessExit& from) {
  to.setCode(from.exit_code.value_or(from.signal.value_or(0)));
  to.setCpuUserNs(static_cast<uint64_t>(from.cpu_user_ns.value_or(0)));
  to.setCpuSystemNs(static_cast<uint64_t>(from.cpu_system_ns.value_or(0)));
  to.setMaxResidentBytes(from.cgroup_peak_bytes.value_or(from.max_rss_bytes.value_or(0)));
  to.setWallNs(static_cast<uint64_t>(from.wall_ms.value_or(0)) * 1'000'000);
  write_measure(to.initIoReadBytes(), measure(from.read_bytes));
  write_measure(to.initIoWriteBytes(), measure(from.written_bytes));
}

void write_exit(wire::Exit::Builder to, const ExitReport& from) {
  to.setHow(task_end_name(from.how).data());
  to.setReason(from.reason);
  to.setNodeFault(from.node_fault);
  to.setNoRoomBytes(from.no_room_bytes);
  if (from.process) {
    write_process(to, *from.process);
  } else {
    to.initIoReadBytes().setUnavailable("the task was not launched");
    to.initIoWriteBytes().setUnavailable("the task was not launched");
  }
  auto written = to.initWritten(static_cast<uint32_t>(from.written.size()));
  for (uint32_t i = 0; i < written.size(); ++i) write_replica(written[i], from.written[i]);
  to.setMemoryTier(from.memory_tier);
  auto memory = to.initMemory(static_cast<uint32_t>(from.memory.size()));
  for (uint32_t i = 0; i < memory.size(); ++i) write_metric(memory[i], from.memory[i]);
}

struct EventWriter {
  wire::NodeEvent::Builder to;
  int64_t now_ns = 0;

  void operator()(const ReplicaChange& from) { write_replica(to.initReplica(), from); }
  void operator()(const ServedEvent& from) {
    auto served = to.initServed();
    write_attempt(from.attempt, served.initAttempt());
    write_served(served.initData(), from.data);
  }
  void operator()(const StartedEvent& from) {
    auto started = to.initStarted();
    write_attempt(from.attempt, started.initAttempt());
    started.setPid(from.pid);
    auto units = started.initCpuUnits(static_cast<uint32_t>(from.cpu_units.size()));
    for (uint32_t i = 0; i < units.size(); ++i) units.set(i, from.cpu_units[i]);
  }
  void operator()(const ExitedEvent& from) {
    auto exited = to.initExited();
    write_attempt(from.attempt, exited.initAttempt());
    auto exit = exited.initExit();
    write_exit(exit, from.exit);
    if (from.at_ns > 0 && now_ns > from.at_ns)
      exit.setAgoMs(static_cast<uint64_t>(now_ns - from.at_ns) / 1'000'000);
  }
  void operator()(const CheckpointedEvent& from) {
    auto checkpointed = to.initCheckpointed();
    write_attempt(from.attempt, checkpointed.initAttempt());
    checkpointed.setCheckpoint(from.checkpoint);
    checkpointed.setStallNs(from.stall_ns);
    checkpointed.setCopyNs(from.copy_ns);
  }
  void operator()(const UnitFaultEvent& from) {
    auto fault = to.initUnitFault();
    fault.setUnit(from.unit);
    fault.setKind(from.kind);
    fault.setDetail(from.detail);
  }
};

bool has_nul(const std::string& value) {
  return value.find('\0') != std::string::npos;
}

Result<RankAssignment> read_rank(wire::Rank::Reader from) {
  RankAssignment rank{.gang = from.getGang(),
                      .rank = from.getRank(),
                      .world_size = from.getWorldSize(),
                      .place = {.local_rank = from.getLocalRank(),
                                .local_world_size = from.getLocalWorldSize(),
                                .node_rank = from.getNodeRank(),
                                .cpu_units = {},
                                .gpus = {}},
                      .master_address = text(from.getMasterAddress()),
                      .master_port = from.getMasterPort(),
                      .restarts = from.getRestarts()};
  auto& place = rank.place;
  if (rank.rank >= rank.world_size || place.local_rank >= place.local_world_size)
    return fail(ErrorCode::kInvalid,
                fmt::format("rank {} of {}, {} of {} on its node: there is no "
                            "such rank",
                            rank.rank, rank.world_size, place.local_rank, place.local_world_size));
  if (from.getCpuUnits().size() > kMaxItems || from.getGpus().size() > kMaxItems)
    return fail(ErrorCode::kInvalid, fmt::format("more than {} units or GPUs", kMaxItems));
  for (const uint32_t unit : from.getCpuUnits()) place.cpu_units.push_back(unit);
  for (const auto gpu : from.getGpus()) place.gpus.push_back(text(gpu));
  if (has_nul(rank.master_address) || std::any_of(place.gpus.begin(), place.gpus.end(), has_nul))
    return fail(ErrorCode::kInvalid, "the place of a rank has a NUL byte in it");
  return rank;
}

Status check_strings(const Assignment& assignment) {
  for (const auto& argument : assignment.argv)
    if (has_nul(argument)) return fail(ErrorCode::kInvalid, "an argument has a NUL byte");
  for (const auto& [name, value] : assignment.env)
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value))
      return fail(ErrorCode::kInvalid,
                  fmt::format("environment variable '{}' cannot be set: its name is empty or has "
                              "'=', or a NUL byte is in it",
                              name));
  return {};
}

}  // namespace

Result<ServeItem> read_need(wire::DatasetNeed::Reader from) {
  ServeItem need{
      text(from.getDataset()),      from.getVersion(), from.getBytes(), from.getWrite(), {},
      read_digest(from.getDigest())};
  if (need.name.empty()) return fail(ErrorCode::kInvalid, "a dataset without a name");
  if (from.getSources().size() > kMaxItems)
    return fail(ErrorCode::kInvalid, fmt::format("dataset '{}': too many sources", need.name));
  for (const auto source : from.getSources()) need.sources.push_back(text(source));
  return need;
}

void write_metric(wire::Metric::Builder to, const MetricValue& from) {
  to.setName(from.name);
  write_measure(to.initValue(), from.value);
}

void write_measure(wire::Measure::Builder to, const Result<double>& from) {
  if (from)
    to.setValue(*from);
  else
    to.setUnavailable(from.error().message);
}

void write_replica(wire::Replica::Builder to, const ReplicaChange& from) {
  to.setDataset(from.name);
  to.setVersion(from.version);
  to.setBytes(from.bytes);
  to.setInFast(from.in_fast);
  to.setInSlow(from.in_slow);
  to.setHome(from.home);
  to.setDamaged(from.damaged);
  write_digest(to.initDigest(), from.digest);
}

void write_event(wire::NodeEvent::Builder to, const Event& from, int64_t now_ns) {
  to.setSequence(from.sequence);
  std::visit(EventWriter{to, now_ns}, from.body);
}

void write_job_report(wire::JobReport::Builder to, const JobReport& from) {
  write_attempt(from.attempt, to.initAttempt());
  to.setAtMs(from.at_ms);
  to.setIteration(from.progress.iteration);
  to.setIterations(from.progress.iterations);
  to.setSamples(from.progress.samples);
  to.setCpuNs(from.cpu_ns);
  to.setMilliUnits(from.milli_units);
  to.setWaitedNs(from.waited_ns);
  to.setTakesCheckpoints(from.takes_checkpoints);
  if (from.progress.loss)
    to.initLoss().setValue(*from.progress.loss);
  else
    to.initLoss().setUnavailable("the job did not say");
  auto measures = to.initMeasures(static_cast<uint32_t>(from.progress.measures.size()));
  for (uint32_t i = 0; i < measures.size(); ++i) {
    measures[i].setName(from.progress.measures[i].first);
    measures[i].initValue().setValue(from.progress.measures[i].second);
  }
}

Result<Assignment> read_assignment(wire::Assignment::Reader from) {
  Assignment assignment;
  assignment.attempt = read_attempt(from.getAttempt());
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, fmt::format("task {} attempt {}: {}", assignment.attempt.task,
                                                 assignment.attempt.attempt, why));
  };
  if (std::max({from.getArgv().size(), from.getEnv().size(), from.getDatasets().size()}) >
      kMaxItems)
    return refuse(fmt::format("more than {} arguments, variables or datasets", kMaxItems));
  for (const auto argument : from.getArgv()) assignment.argv.push_back(text(argument));
  for (const auto variable : from.getEnv())
    assignment.env.emplace_back(text(variable.getName()), text(variable.getValue()));
  if (auto status = check_strings(assignment); !status) return refuse(status.error().message);

  assignment.units = from.getUnits();
  assignment.max_units = from.getMaxUnits();
  assignment.memory_limit_bytes = from.getMemoryLimitBytes();
  assignment.swap_room_bytes = from.getSwapRoomBytes();
  assignment.time_limit_ms = from.getTimeLimitMs();
  if (assignment.time_limit_ms < 0) return refuse("the time limit is negative");
  assignment.name = text(from.getName());
  assignment.submitter = text(from.getSubmitter());
  if (has_nul(assignment.submitter)) return refuse("its submitter has a NUL byte in it");
  auto wish = parse_memory_wish(text(from.getMemoryTier()));
  if (!wish) return refuse(wish.error().message);
  assignment.memory_wish = *wish;
  assignment.reckoning = from.getReckoning();
  assignment.place_s = from.getPlaceS();
  if (from.hasRank()) {
    auto rank = read_rank(from.getRank());
    if (!rank) return refuse(rank.error().message);
    assignment.rank = std::move(*rank);
  }
  if (from.hasShare())
    assignment.part = UnitPart{from.getShare().getUnit(), from.getShare().getMilli(),
                               from.getShare().getMemoryBytes(), from.getShare().getMostMilli()};
  std::set<std::string> seen;
  for (const auto item : from.getDatasets()) {
    auto need = read_need(item);
    if (!need) return refuse(need.error().message);
    if (!seen.insert(need->name).second)
      return refuse(fmt::format("dataset '{}' is named twice", need->name));
    if (item.getCheckpoint()) assignment.checkpoint = need->name;
    assignment.datasets.push_back(std::move(*need));
  }
  return assignment;
}

Result<CreateSource> read_source(wire::DatasetSource::Reader from, bool of_everyone) {
  switch (from.which()) {
    case wire::DatasetSource::FILE:
      return ImportFile{text(from.getFile()), of_everyone};
    case wire::DatasetSource::ZERO_BYTES:
      return ZeroFill{from.getZeroBytes()};
    case wire::DatasetSource::RANDOM:
      return RandomFill{from.getRandom().getBytes(), from.getRandom().getSeed()};
  }
  return fail(ErrorCode::kInvalid, "a kind of dataset source that this version does not know");
}

}  // namespace tierpilot::agent
