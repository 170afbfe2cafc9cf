// What shares learn from the jobs that ran, and where it is kept.
#include <algorithm>

#include "base/log.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/core/sharing/share_waits.h"

namespace tierpilot {

using records::MeasuredPair;
using records::PairKind;
using sharing::UnitKind;

namespace {

void keep(Store& store, PairKind kind, std::vector<MeasuredPair> pairs, int64_t now_ms) {
  if (pairs.empty()) return;
  store.write([kind, pairs = std::move(pairs),
               now_ms](Db& db) { return records::put_pairs(db, kind, pairs, now_ms); },
              nullptr);
}

std::vector<MeasuredPair> kept(Store& store, PairKind kind) {
  auto pairs = records::pairs(store.reader(), kind);
  if (pairs) return std::move(*pairs);
  spdlog::warn("{}: it is learned anew", pairs.error().message);
  return {};
}

constexpr double kMostPeakBytes = 1e15;

// The most that it had of what its share is counted in; 0: not told.
uint64_t peak_bytes(const Task& task) {
  if (!task.exit) return 0;
  if (!task.spec.has_gpu_share()) return task.exit->max_resident_bytes;
  for (const auto& [name, figure] : task.exit->memory)
    if (name == "gpu_peak_bytes")  // a node's word: any number
      return static_cast<uint64_t>(std::clamp(figure.value.value_or(0), 0.0, kMostPeakBytes));
  return 0;
}

}  // namespace

void ShareKeeper::restore_learned() {
  if (auto past = records::past_runs(state_.store.reader()))
    forecasts_.restore(std::move(*past));
  else
    spdlog::warn("{}: jobs are predicted as if none had run", past.error().message);
  for (const auto& [kind, on] : {std::pair(PairKind::kOnCores, UnitKind::kCores),
                                 std::pair(PairKind::kOnGpus, UnitKind::kGpu)})
    for (const auto& pair : kept(state_.store, kind))
      slow_downs_.restore({on, pair.first, pair.second, pair.measured});
  speeds_.restore(kept(state_.store, PairKind::kRuns));
  gpu_speeds_.restore(kept(state_.store, PairKind::kGpuRuns));
}

void ShareKeeper::learn_of(const Task& task, const ShareRecord& record) {
  const auto* node = state_.registry.find(task.node);
  const auto unit = node ? features(node->facts, task.share->unit) : UnitFeatures{};
  const double now_s = boot_s(state_);
  const double told_late_s =
      task.exit ? std::min(static_cast<double>(task.exit->ago_ms) / 1e3, record.elapsed_s(now_s))
                : 0;
  const double worked_s = std::max(0.0, record.worked_s(now_s - told_late_s));
  remember(task.spec, forecasts_.ended(task.spec, unit, static_cast<uint32_t>(*record.used_milli()),
                                       peak_bytes(task), record.start_s().value_or(0) + worked_s,
                                       record.start_s(), state_.clock.wall_ms()));
  if (!node || !record.start_s()) return;
  const bool on_gpu = task.spec.has_gpu_share();
  auto& speeds = on_gpu ? gpu_speeds_ : speeds_;
  auto as_probed = unit;
  as_probed.speed.times = on_gpu ? 1 : speeds_.probed(node->facts);
  const double foretold_s = forecasts_.run_by_card_s(task.spec, as_probed);
  if (foretold_s > 0)
    speeds.ran(on_gpu ? unit.gpu.name : node->facts.name, forecasts_.model_of(task.spec),
               worked_s / foretold_s);
  keep(state_.store, on_gpu ? PairKind::kGpuRuns : PairKind::kRuns, speeds.take_learned(),
       state_.clock.wall_ms());
}

void ShareKeeper::remember(const TaskSpec& spec, const ShareForecasts::Learned& learned) {
  if (!learned.runs) return;
  state_.store.write(
      [id = PastRunsId(spec.share.engine, spec.name), text = past_runs_text(*learned.runs),
       forgotten = learned.forgotten](Db& db) -> Status {
        if (forgotten)
          if (auto gone = records::remove_past_runs(db, *forgotten); !gone) return gone;
        return records::put_past_runs(db, id, text);
      },
      nullptr);
}

void ShareKeeper::remember_slow_downs() {
  std::vector<MeasuredPair> on_cores, on_gpus;
  for (auto& pair : slow_downs_.take_learned())
    (pair.on == UnitKind::kGpu ? on_gpus : on_cores)
        .push_back({std::move(pair.victim), std::move(pair.neighbour), pair.measured});
  keep(state_.store, PairKind::kOnCores, std::move(on_cores), state_.clock.wall_ms());
  keep(state_.store, PairKind::kOnGpus, std::move(on_gpus), state_.clock.wall_ms());
}

}  // namespace tierpilot
