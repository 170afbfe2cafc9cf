#include "daemon/agent/calibration/recalibration.h"

#include "base/log.h"

namespace tierpilot::agent {
namespace {

// Nodes only, and evictions between them; three rounds, so that noise can be told.
ProbeOptions quick(ProbeOptions options, size_t tiers) {
  options.rounds = 3;
  options.eviction = tiers > 1;
  return options;
}

}  // namespace

Recalibration::Recalibration(Options options, std::unique_ptr<ProbeServer> server,
                             TopologyWatcher watcher, Topology& topology, Calibration& calibration,
                             const Clock& clock)
    : options_(std::move(options)),
      server_(std::move(server)),
      watcher_(std::move(watcher)),
      topology_(topology),
      calibration_(calibration),
      clock_(clock),
      schedule_(options_.schedule, clock, options_.load, calibration.cpu_s),
      measured_ns_(clock.boot_ns()) {}

void Recalibration::tick() {
  follow_topology();
  if (!server_ended_ && !server_->busy() && schedule_.due()) ask();
}

void Recalibration::follow_topology() {
  auto change = watcher_.check();
  if (!change) return;
  for (const auto& what : change->what) spdlog::info("memory: {}", what);
  topology_ = std::move(change->topology);
  for (const auto& warning : follow(calibration_, topology_)) spdlog::error("memory: {}", warning);
  schedule_.hurry();
}

void Recalibration::ask() {
  const auto nodes = remeasurable(calibration_);
  const auto asked = server_->ask(nodes, quick(options_.probe, nodes.size()));
  // Also when it failed: the next try is as far away as after a measurement.
  schedule_.measured(0);
  if (!asked) spdlog::warn("tiers are not measured again: {}", asked.error().message);
}

bool Recalibration::on_probe() {
  const auto answer = server_->take();
  if (!answer) return true;
  schedule_.measured(answer->cpu_s);
  cpu_s_ += answer->cpu_s;
  if (!answer->tiers) {
    spdlog::warn("tiers could not be measured again: {}", answer->tiers.error().message);
    server_ended_ = answer->tiers.error().code == ErrorCode::kIo;
    return !server_ended_;
  }
  ++times_;
  measured_ns_ = clock_.boot_ns();
  take_over(calibration_, *answer->tiers);
  spdlog::debug("tiers measured again in {:.2f} s of CPU time; fast tier {}: {}", answer->cpu_s,
                calibration_.fast_tier().tier.name, calibration_.fast_tier().quality().reason);
  return true;
}

std::vector<MetricValue> Recalibration::metrics() const {
  auto values = tier_metrics(calibration_);
  values.push_back(
      {"tiers_measured_ago_s", static_cast<double>(clock_.boot_ns() - measured_ns_) / 1e9});
  values.push_back({"tiers_measured_again", static_cast<double>(times_)});
  values.push_back({"tiers_measured_again_cpu_s", cpu_s_});
  return values;
}

}  // namespace tierpilot::agent
