// What the library's calls cost a front end: one storage of a step of 1,000, saved, asked for and
// dropped, once nothing leaves any more.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "swap/tierpilot_swap.h"

int main() {
  constexpr size_t kStorages = 1000;
  constexpr int kSteps = 40;
  const tierpilot_swap_settings settings{
      .size = sizeof settings, .budget_bytes = int64_t{1} << 45, .tiers = "memory=64MiB"};
  char error[256];
  auto* swap = tierpilot_swap_open(&settings, error, sizeof error);
  if (!swap) return std::fprintf(stderr, "%s\n", error), 1;
  std::vector<std::vector<char>> data(kStorages, std::vector<char>(4096));
  std::vector<tierpilot_swap_id> ids(kStorages);
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  double out_ns = 1e9, back_ns = 1e9;
  for (int step = 0; step < kSteps; ++step) {
    tierpilot_swap_id named[64];
    const auto start = now();
    for (size_t i = 0; i < kStorages; ++i) {
      const tierpilot_swap_storage storage{
          .place = i + 1, .kind = 1, .flags = 0, .data = data[i].data(), .bytes = 4096};
      ids[i] = tierpilot_swap_save(swap, &storage);
      tierpilot_swap_left(swap, named, 64);
    }
    const auto middle = now();
    for (size_t i = kStorages; i-- > 0;) {
      tierpilot_swap_use(swap, ids[i]);
      tierpilot_swap_ahead(swap, named, 64);
      tierpilot_swap_left(swap, named, 64);
      tierpilot_swap_drop(swap, ids[i]);
    }
    out_ns = std::min(out_ns, Nanoseconds(middle - start).count());
    back_ns = std::min(back_ns, Nanoseconds(now() - middle).count());
    while (tierpilot_swap_left(swap, named, 64) > 0) {
    }
  }
  tierpilot_swap_close(swap);
  std::printf("SAVED ns (save, left)  BACK ns (use, ahead, left, drop)\n%-21.0f  %.0f\n",
              out_ns / kStorages, back_ns / kStorages);
}
