#include "daemon/probe/active/sweep_program.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "base/bytes.h"
#include "daemon/probe/active/initiator.h"
#include "daemon/probe/active/load.h"
#include "daemon/probe/active/rounds.h"
#include "daemon/probe/active/tier_probe.h"
#include "daemon/probe/loops/chase.h"
#include "daemon/probe/loops/stream.h"
#include "daemon/probe/memory/transfer.h"

namespace tierpilot {
namespace {

struct Arena {
  std::unique_ptr<TierMemory> memory;
  std::string how;  // which pages it is made of
  std::optional<Chase> chase;
};

// Keeps memory, chains and transfers between rounds; each is made when a point first needs it.
class Bench {
 public:
  Bench(const std::vector<TierSpec>& tiers, const ProbeOptions& options)
      : tiers_(tiers), options_(options) {
    for (auto& initiator : initiators()) cpus_[initiator.node] = std::move(initiator.cpus);
  }

  void measure(const SweepPoint& point, const Report& report) {
    // Moves run where they are called; the others on their initiator's CPUs.
    if (point.kind == SweepKind::kMove) return move(point, report);
    const auto status = run_on(cpus_[point.initiator_node])
                            ? arena(point)
                            : fail_errno(errno, fmt::format("running on the CPUs of node {}",
                                                            point.initiator_node));
    if (!status) {
      for (const auto name : {figure::kLatency, figure::kLoadRate, figure::kRate})
        report.unavailable(name, status.error().message);
      return;
    }
    auto& with = **status;
    report_once(report, point, with.how);
    switch (point.kind) {
      case SweepKind::kLatency:
        return report.latency(with.chase->run({}).counts);
      case SweepKind::kLoaded:
        return loaded(point, with, report);
      case SweepKind::kBandwidth:
        return stream(point, with, report);
      case SweepKind::kMove:
        break;
    }
  }

 private:
  static Status fill_base(Arena& arena, int node, size_t bytes) {
    auto memory = allocate_on_node(node, bytes, PageSize::kBase);
    if (!memory) return tl::unexpected(memory.error());
    arena.memory = std::move(*memory);
    return {};
  }
  static Status fill_huge(Arena& arena, int node, size_t bytes) {
    auto huge = allocate_huge_on_node(node, bytes);
    if (!huge) return tl::unexpected(huge.error());
    arena.memory = std::move(huge->memory);
    arena.how = std::move(huge->how);
    return {};
  }
  Result<Arena*> arena(const SweepPoint& point) {
    const bool streams = point.kind == SweepKind::kBandwidth;
    const auto key = std::tuple(point.tier, point.pages, streams);
    if (const auto failed = failures_.find(key); failed != failures_.end())
      return tl::unexpected(failed->second);
    if (const auto made = arenas_.find(key); made != arenas_.end()) return &made->second;
    const auto& tier = tiers_[point.tier];
    const auto bytes = options_.node_footprint_bytes;
    Arena arena{.how = "base pages"};
    auto status = point.pages == PageSize::kBase ? fill_base(arena, tier.numa_node, bytes)
                                                 : fill_huge(arena, tier.numa_node, bytes);
    if (!status) {
      failures_.emplace(key, status.error());
      return tl::unexpected(status.error());
    }
    if (!streams)
      arena.chase.emplace(arena.memory->data(), arena.memory->size(), kCacheLineBytes, 1);
    return &arenas_.emplace(key, std::move(arena)).first->second;
  }

  // The method is the same in every round.
  void report_once(const Report& report, const SweepPoint& point, const std::string& how) {
    if (methods_.insert(&point).second) report.method(how);
  }

  // One CPU chases, the initiator's others read the same memory.
  void loaded(const SweepPoint& point, Arena& with, const Report& report) {
    auto others = cpus_[point.initiator_node];
    run_on({others.back()});
    others.pop_back();
    if (point.load_percent == 0) {
      report.value(figure::kLoadRate, 0);
      return report.latency(with.chase->run({}).counts);
    }
    if (others.empty()) {
      const auto reason =
          fmt::format("node {} has no second CPU to make the load with", point.initiator_node);
      report.unavailable(figure::kLatency, reason);
      return report.unavailable(figure::kLoadRate, reason);
    }
    MemoryLoad load(with.memory->data(), with.memory->size(), others, point.load_percent);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until the threads are at it
    load.bytes_per_s();
    auto counts = with.chase->run({}).counts;
    report.value(figure::kLoadRate, load.bytes_per_s() / 1e9);
    report.latency(std::move(counts));
  }

  void stream(const SweepPoint& point, Arena& with, const Report& report) {
    auto* data = with.memory->data();
    const size_t half = with.memory->size() / 2;
    const auto rate = [&] {
      switch (point.stream) {
        case StreamKind::kRead:
          return read_bytes_per_s(data, 2 * half, point.threads);
        case StreamKind::kWrite:
          return write_bytes_per_s(data, 2 * half, point.threads);
        case StreamKind::kCopy:
          break;
      }
      return copy_bytes_per_s(data, data + half, half, point.threads);
    };
    report.value(figure::kRate, rate() / 1e9);
  }

  void move(const SweepPoint& point, const Report& report) {
    auto found = transfers_.find(&point);
    if (found == transfers_.end()) {
      auto made = make_transfer(tiers_[point.tier], tiers_[point.slower_tier],
                                {.bytes = options_.transfer_bytes,
                                 .pages = point.pages,
                                 .batch_bytes = point.batch_bytes});
      if (made) report.method((*made)->method());
      found = transfers_.emplace(&point, std::move(made)).first;
    }
    if (found->second)
      report_transfer(**found->second, report);
    else
      report_no_transfer(found->second.error(), report);
  }

  const std::vector<TierSpec>& tiers_;
  const ProbeOptions& options_;
  std::map<int, std::vector<int>> cpus_;  // of the initiators
  std::map<std::tuple<size_t, PageSize, bool>, Arena> arenas_;
  std::map<std::tuple<size_t, PageSize, bool>, Error> failures_;
  std::map<const SweepPoint*, Result<std::unique_ptr<Transfer>>> transfers_;
  std::set<const SweepPoint*> methods_;
};

}  // namespace

void probe_points(const std::vector<TierSpec>& tiers, const std::vector<SweepPoint>& points,
                  const ProbeOptions& options, const ObservationSink& sink) {
  Rounds rounds(options.rounds, Rounds::Clock::now() + options.enough);
  Bench bench(tiers, options);
  while (rounds.next())
    for (size_t i = 0; i < points.size(); ++i) bench.measure(points[i], Report(i, sink));
}

}  // namespace tierpilot
