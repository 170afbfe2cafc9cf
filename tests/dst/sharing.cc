#include "tests/dst/sharing.h"

#include <fmt/format.h>

#include "tests/dst/judge/judge.h"
#include "tests/dst/random.h"

namespace tierpilot::dst {
namespace {

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

// Of some engine, and with memory that others may have.
void make_gpu_share(Random& random, TaskSpec& task) {
  if (random.chance(0.6)) task.share.engine = Engine::kGpu;
  if (random.chance(0.6))
    task.memory_bytes = static_cast<uint64_t>(random.between(100, 700)) * kMiB;
  if (random.chance(0.3)) task.share.milli = static_cast<uint32_t>(random.between(1, 9)) * 50;
}

// Several of them wait at a time, and some run for long beside others.
void promise_more(Random& random, TaskSpec& task) {
  task.argv[1] = std::to_string(random.between(500, 20'000));
  if (random.chance(0.6)) task.datasets.clear();
  task.share.latency_sensitive = task.share.latency_sensitive || random.chance(0.4);
  task.share.estimate_ms = 1;  // as long as it runs
}

}  // namespace

bool shares(uint64_t seed, const Kinds& included) {
  return included.contains("shares") && Random(seed, "shares").chance(0.4);
}

bool shares_gpus(uint64_t seed, const Kinds& included) {
  return included.contains("gpus") && shares(seed, included) && Random(seed, "gpus").chance(0.6);
}

bool is_calm(uint64_t seed, const Kinds& included) {
  return shares(seed, included) && Random(seed, "calm").chance(0.25);
}

bool are_estimates_right(uint64_t seed) {
  return !Random(seed, "estimates").chance(0.3);
}

SharedUnits shared_units_of(uint64_t seed, int node, const Kinds& included) {
  if (!shares_gpus(seed, included)) return {{"cpu", 2, kGiB}};
  Random random(seed, fmt::format("units of node {}", node));
  SharedUnits units;
  // There are jobs for the first node alone.
  for (auto cores = random.between(node == 0, 2); cores > 0; --cores)
    units.push_back({"cpu", static_cast<double>(random.between(1, 2)), kGiB});
  for (auto gpus = random.between(node == 0, 2); gpus > 0; --gpus)
    units.push_back(
        {random.chance(0.7) ? "H200" : "A100", 1, kGiB, fmt::format("GPU-{}-{}", node + 1, gpus)});
  return units;
}

void estimate(uint64_t seed, TaskSpec& task) {
  if (task.share.estimate_ms == 0) return;
  task.share.estimate_ms = runs_ms(task.argv) + 50;
  if (are_estimates_right(seed)) return;
  Random random(seed, "estimate of " + task.name);
  if (random.chance(0.5)) task.share.estimate_ms *= random.between(2, 25);
  task.share.estimate_ms = std::max<int64_t>(task.share.estimate_ms / 10, 1);
}

void make_shares(uint64_t seed, uint64_t number, const Kinds& included,
                 std::vector<TaskSpec>& tasks) {
  if (!shares(seed, included)) return;
  Random random(seed, fmt::format("shares {}", number));
  Random more(seed, fmt::format("shares of GPUs {}", number));
  Random calm(seed, fmt::format("shares of calm runs {}", number));
  for (auto& task : tasks) {
    if (task.is_gang() || random.chance(0.2)) continue;
    if (random.chance(0.5)) task.datasets.clear();
    if (random.chance(0.5)) task.argv[1] = std::to_string(random.between(500, 6'000));
    if (random.chance(0.5)) task.node = "n1";
    task.memory_bytes = kMiB;
    task.share.wanted = true;
    task.share.milli = static_cast<uint32_t>(random.between(3, 10)) * 100;
    task.share.latency_sensitive = random.chance(0.5);
    if (random.chance(0.8)) task.share.estimate_ms = runs_ms(task.argv) + 50;
    if (is_calm(seed, included)) promise_more(calm, task);
    if (shares_gpus(seed, included)) make_gpu_share(more, task);
    set_argument(task.argv, kNeedsMilli, task.share.milli);
    estimate(seed, task);
    // Nobody knows when others end: such a promise is refused, and the job with it.
    const bool may_be_promised = task.share.estimate_ms > 0 && task.after.empty();
    if (!task.share.latency_sensitive || !may_be_promised || random.chance(0.4)) continue;
    task.share.promise_ms = random.between(4, 40) * 1'000;
    task.share.promise_on_trial = random.chance(0.5);
  }
}

}  // namespace tierpilot::dst
