#include "policies/sim/gang/learned_placers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tierpilot::gang {
namespace {

Result<std::unique_ptr<Placer>> published_placer(const GangSuite& suite, const GangCell& cell,
                                                 uint64_t seed, PublishedSettings settings,
                                                 uint32_t workloads) {
  if (suite.make_scene)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("policy '{}': it learns on drawn failures, which a record's are not: leave "
                    "it out, or the record",
                    kAcPublished));
  settings.seed = seed;
  PublishedTrainer trainer(cell.units, settings);
  for (uint32_t workload = 1; workload <= workloads; ++workload)
    trainer.learn(scene_of(suite, cell, seed, workload));
  return make_published_placer(trainer.nets());
}

constexpr uint64_t kNoSuites = uint64_t{1} << 40;  // whose seeds are small

std::pair<GangSuite, GangCell> training_cluster(uint64_t seed, bool has_trace) {
  constexpr uint32_t kClusters[] = {16, 16, 64, 64, 64, 256};
  SeededRandom random(derived_seed(seed, "gang training scene"));
  GangSuite suite;
  suite.costs = {.checkpoint_h = random.log_uniform(0.005, 0.1),
                 .restart_h = random.log_uniform(0.03, 0.5),
                 .repair_h = random.log_uniform(2, 64)};
  const GangCell cell{.units = kClusters[random.below(std::size(kClusters))],
                      .units_per_node = random.chance(0.5) ? 4U : 8U,
                      .setting = static_cast<FailureSetting>(random.below(4)),
                      .mean_per_h = random.log_uniform(2e-5, 1e-2),
                      .from_trace = has_trace && random.chance(0.5),
                      .with_data = random.chance(0.3)};
  return {std::move(suite), cell};
}

}  // namespace

bool learns(const std::string& policy) {
  return policy == kAc || policy == kAcPublished;
}

GangScene training_scene(uint64_t seed, const std::vector<Job>& trace) {
  auto [suite, cell] = training_cluster(seed, !trace.empty());
  suite.trace = trace;
  return scene_of(suite, cell, seed | kNoSuites);
}

GangScene recorded_training_scene(uint64_t seed, const GangHistory& history) {
  const auto [suite, cell] = training_cluster(seed, true);
  return history_scene(history, suite, cell, seed | kNoSuites);
}

PlacerMaker placer_maker(const GangSuite& suite, std::shared_ptr<const AcNet> net,
                         PublishedSettings published, uint32_t workloads) {
  return [&suite, net = std::move(net), published, workloads](
             const std::string& name, const GangCell& cell,
             uint64_t seed) -> Result<std::unique_ptr<Placer>> {
    if (name == kAc && net) return make_ac_placer(net);
    if (name == kAcPublished) return published_placer(suite, cell, seed, published, workloads);
    auto placer = make_placer(name, seed);
    if (placer) return placer;
    return fail(placer.error().code,
                fmt::format("{}, {}, {}", placer.error().message, kAc, kAcPublished));
  };
}

}  // namespace tierpilot::gang
