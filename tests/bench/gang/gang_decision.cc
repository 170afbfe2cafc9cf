// How long a policy takes to place a job of 64 ranks on 1,024 units of which half are free. The
// policies take turns, so that a busy moment of the machine hits all of them.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "policies/learning/saved_bytes.h"
#include "policies/sim/gang/learned_placers.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kUnits = 1024;
constexpr uint32_t kRanks = 64;
constexpr int kRounds = 200;

// With data that every third node has.
PlacementState half_free(const UnitFailures& failures, bool with_data, SeededRandom& random) {
  PlacementState state{.now_h = 0,
                       .units_per_node = 8,
                       .node = {},
                       .free = {},
                       .per_h = {},
                       .rate_shape = {},
                       .fetch_h = {},
                       .waiting_units = 0,
                       .costs = {},
                       .next_failure_h = [&failures](uint32_t unit, double after_h) {
                         return failures.next(unit, after_h);
                       }};
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    state.node.push_back(unit / 8);
    state.free.push_back(random.chance(0.5));
    state.per_h.push_back(random.log_uniform(1e-5, 1e-2));
    if (with_data) state.fetch_h.push_back(unit / 8 % 3 == 0 ? 0 : 1);
  }
  return state;
}

// Of this thread: what a busy machine takes away does not count.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

double percentile(std::vector<double>& values, size_t percent) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) * percent / 100];
}

void run(const std::shared_ptr<const AcNet>& net, bool with_data) {
  const auto failures = draw_failures({.units = kUnits, .units_per_node = 8, .until_h = 1000});
  auto names = placers().names();
  names.insert(names.end(), {kAc, kAcPublished});
  const auto published = std::make_shared<const PublishedNets>(kUnits, 1);
  std::vector<std::vector<double>> took_ms(names.size()), took_cpu_ms(names.size());
  SeededRandom random(1);
  for (int round = 0; round < kRounds; ++round) {
    const auto state = half_free(failures, with_data, random);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto placer = names[i] == kAc            ? make_ac_placer(net)
                          : names[i] == kAcPublished ? make_published_placer(published)
                                                     : std::move(*make_placer(names[i], round));
      const auto begin = std::chrono::steady_clock::now();
      const double begin_cpu_ms = cpu_ms();
      const auto units = placer->place(state, {.units = kRanks, .work_h = 10});
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      if (units.size() != kRanks) continue;
      took_ms[i].push_back(took.count());
      took_cpu_ms[i].push_back(cpu_ms() - begin_cpu_ms);
    }
  }
  fmt::print("{}\n{:<16}{:>10}{:>10}{:>14}\n",
             with_data ? "\nWith data on every third node" : "Nothing to fetch", "POLICY", "P50 ms",
             "P99 ms", "P99 of CPU ms");
  for (size_t i = 0; i < names.size(); ++i)
    fmt::print("{:<16}{:>10.3f}{:>10.3f}{:>14.3f}\n", names[i], percentile(took_ms[i], 50),
               percentile(took_ms[i], 99), percentile(took_cpu_ms[i], 99));
}

}  // namespace
}  // namespace tierpilot::gang

int main(int argc, char** argv) {
  const auto text = tierpilot::load_bytes(argc > 1 ? argv[1] : "policies/weights/ac.weights");
  const auto net =
      text ? tierpilot::gang::read_ac_weights(*text, "ac.weights") : tl::unexpected(text.error());
  if (!net) {
    fmt::print(stderr, "error: {}\n", net.error().message);
    return 1;
  }
  const auto shared = std::make_shared<const tierpilot::gang::AcNet>(*net);
  for (const bool with_data : {false, true}) tierpilot::gang::run(shared, with_data);
}
