#include <cmath>

#include <fmt/format.h>

#include "base/sysroot.h"
#include "base/text/utf8.h"
#include "coordinator/service/wire.h"
#include "rpc/digest.h"
#include "rpc/protocol.h"

namespace tierpilot {
namespace {

// Of a ratio or of GB/s: beyond, one node would spoil what is averaged over all.
constexpr double kMostPlausible = 1e6;

Figure read_figure(wire::Measure::Reader in) {
  Figure figure;
  if (!in.isValue())
    figure.unavailable = short_reason(in.getUnavailable());
  else if (std::isfinite(in.getValue()))
    figure.value = in.getValue();
  else
    figure.unavailable = "the node gave no finite number";
  return figure;
}

// Of the GPU with that UUID, as far as its node tells.
sharing::GpuFeatures read_gpu_kind(wire::NodeInfo::Reader in, const std::string& uuid) {
  for (const auto gpu : in.getGpus()) {
    if (uuid.empty() || text(gpu.getUuid()) != uuid) continue;
    const double capability = gpu.getComputeCapability();
    return {.name = text(gpu.getName()),
            .compute_capability = capability > 0 && capability < kMostPlausible ? capability : 0,
            .memory_bytes = gpu.getMemoryBytes(),
            .cores = gpu.getCores(),
            .sm_clock_mhz = gpu.getSmClockMhz(),
            .memory_clock_mhz = gpu.getMemoryClockMhz(),
            .bus_width_bits = gpu.getBusWidthBits()};
  }
  return {};
}

// A GPU is named by it: see gpu_unit_id().
bool is_uuid(std::string_view uuid) {
  constexpr size_t kMostBytes = 96;
  return !uuid.empty() && uuid.size() <= kMostBytes && uuid.find('/') == uuid.npos;
}

// As much as the datasets of a task that was taken can come to: see check_names_in(). What is too
// long is no dataset's name, and judged as that.
std::vector<DatasetVersion> read_written(capnp::List<wire::Replica>::Reader in) {
  constexpr size_t kEach = 16, kMostBytes = 1 << 20, kMostNameBytes = 128;
  std::vector<DatasetVersion> written;
  size_t bytes = 0;
  for (const auto replica : in) {
    auto name = beginning(text(replica.getDataset()), kMostNameBytes);
    bytes += name.size() + kEach;
    if (bytes > kMostBytes) break;
    written.push_back({std::move(name), replica.getVersion(), replica.getBytes(),
                       read_digest(replica.getDigest())});
  }
  return written;
}

}  // namespace

std::string short_reason(capnp::Text::Reader from) {
  return beginning(text(from), kMostReasonBytes);
}

TaskExit read_exit(wire::Exit::Reader in) {
  TaskExit exit;
  exit.code = in.getCode();
  // What a node may make the store keep for each task.
  constexpr size_t kMostText = 4096;
  constexpr unsigned kMostFigures = 64;
  exit.reason = beginning(text(in.getReason()), kMostText);
  const auto how = parse_task_end(text(in.getHow()));
  exit.how = how.value_or(TaskEnd::kUnknown);
  if (!how)
    exit.reason = fmt::format("it ended as '{}', which this coordinator does not know: {}",
                              beginning(text(in.getHow()), kMostText), exit.reason);
  exit.cpu_user_ns = in.getCpuUserNs();
  exit.cpu_system_ns = in.getCpuSystemNs();
  exit.max_resident_bytes = in.getMaxResidentBytes();
  exit.wall_ns = in.getWallNs();
  exit.io_read_bytes = read_figure(in.getIoReadBytes());
  exit.io_write_bytes = read_figure(in.getIoWriteBytes());
  exit.written = read_written(in.getWritten());
  exit.memory_tier = beginning(text(in.getMemoryTier()), kMostText);
  exit.node_fault = in.getNodeFault();
  exit.ago_ms = in.getAgoMs();
  exit.no_room_bytes = in.getNoRoomBytes();
  for (const auto figure : in.getMemory())
    if (exit.memory.size() < kMostFigures)
      exit.memory.emplace_back(beginning(text(figure.getName()), kMostText),
                               read_figure(figure.getValue()));
  return exit;
}

JobPoint read_job_report(wire::JobReport::Reader in) {
  constexpr size_t kMostMeasures = 32, kMostNameBytes = 64;  // as nodes take them from jobs
  JobPoint point{.attempt = in.getAttempt().getAttempt(),
                 .at_ms = in.getAtMs(),
                 .iteration = in.getIteration(),
                 .iterations = in.getIterations(),
                 .samples = in.getSamples(),
                 .loss = read_figure(in.getLoss()),
                 .measures = {},
                 .cpu_ns = in.getCpuNs(),
                 .milli_units = in.getMilliUnits(),
                 .waited_ns = in.getWaitedNs(),
                 .takes_checkpoints = in.getTakesCheckpoints()};
  for (const auto measure : in.getMeasures())
    if (point.measures.size() < kMostMeasures)
      point.measures.emplace_back(beginning(text(measure.getName()), kMostNameBytes),
                                  read_figure(measure.getValue()));
  return point;
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
  facts.swap_room_bytes = in.getSwapRoomBytes();
  facts.largest_write_bytes = in.getLargestWriteBytes();
  facts.data_address = text(in.getDataAddress());
  const auto ratio = in.getInt32ToFloat();
  if (ratio.isValue() && ratio.getValue() > 0 && ratio.getValue() < kMostPlausible)
    facts.int32_to_float = ratio.getValue();
  const auto speed = in.getFloat32OpsPerS();
  if (speed.isValue() && speed.getValue() > 0) facts.float32_ops_per_s = speed.getValue();
  facts.rates = read_rates(in.getTiers());
  facts.runs_gangs = read_program(in.getProgram(), "tierpilotd").can(kGangFeature);
  facts.takes_checkpoints = read_program(in.getProgram(), "tierpilotd").can(kCheckpointFeature);
  if (const auto cpus = parse_id_list(text(in.getCpus())))
    facts.cpus = static_cast<uint32_t>(cpus->size());
  constexpr size_t kMostSharedUnits = 1024;
  for (const auto unit : in.getSharedUnits()) {
    if (facts.shared_units.size() >= kMostSharedUnits) break;
    // Of a GPU the use is told as time, as if it had one core.
    const auto gpu = text(unit.getGpu());
    if (!gpu.empty() && !is_uuid(gpu)) continue;
    const double cores = gpu.empty() ? unit.getCores() : 1;
    if (!(cores > 0) || cores >= kMostPlausible) continue;
    const auto type = gpu.empty() ? text(unit.getType()) : "gpu/" + text(unit.getType());
    facts.shared_units.push_back({type, cores, unit.getMemoryBytes(), gpu, read_gpu_kind(in, gpu)});
  }
  constexpr size_t kMostGpus = 1024;
  for (const auto gpu : in.getGpus()) {
    const auto uuid = text(gpu.getUuid());
    if (facts.gpus.size() < kMostGpus && is_uuid(uuid) && !facts.shares_gpu(uuid))
      facts.gpus.push_back(uuid);
  }
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

}  // namespace tierpilot
