#include "policies/sharing/filling.h"

#include <utility>

#include "base/random.h"

namespace tierpilot::sharing {
namespace {

void shuffle(std::vector<Request>& values, SeededRandom& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace

std::vector<Request> drawn_arrivals(std::vector<Request> listed, double milli, uint64_t seed) {
  auto arrivals = std::move(listed);
  const size_t count = arrivals.size();
  SeededRandom random(seed);
  shuffle(arrivals, random);
  double total = 0;
  size_t kept = 0;
  while (kept < count && total < milli)
    total += static_cast<double>(arrivals[kept++].total_milli());
  arrivals.resize(kept);
  while (total < milli && kept == count) {
    arrivals.push_back(arrivals[random.below(count)]);
    total += static_cast<double>(arrivals.back().total_milli());
  }
  shuffle(arrivals, random);
  return arrivals;
}

}  // namespace tierpilot::sharing
