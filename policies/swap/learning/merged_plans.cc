#include "policies/swap/learning/merged_plans.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {
namespace {

constexpr size_t kMostSegments = 256;
constexpr size_t kMostMergedSaves = 500'000;  // some 100 bytes each, in a file of 64 MiB

bool same_step(const KeptStep& a, const KeptStep& b) {
  return std::ranges::equal(a.step.saves, b.step.saves, [](const auto& x, const auto& y) {
    return x.place == y.place && x.bytes == y.bytes;
  });
}

size_t tries(const KeptStep& kept) {
  return kept.widened + static_cast<size_t>(kept.explorations);
}

bool wins(const KeptStep& ours, const KeptStep& theirs) {
  return !ours.fits || (ours.ran && tries(ours) >= tries(theirs));
}

std::vector<KeptStep> merged_steps(std::vector<KeptStep> ours, std::vector<KeptStep> theirs) {
  std::erase_if(ours, [&](const KeptStep& mine) {
    const auto same = [&](const KeptStep& other) { return same_step(mine, other); };
    const auto found = std::ranges::find_if(theirs, same);
    if (found == theirs.end()) return !mine.fits;
    if (!wins(mine, *found)) return true;
    theirs.erase(found);
    return !mine.fits;
  });
  std::stable_partition(ours.begin(), ours.end(), [](const KeptStep& kept) { return !kept.ran; });
  std::ranges::move(ours, std::back_inserter(theirs));
  size_t saves = 0, count = 0;
  while (count < std::min(theirs.size(), kMostKnownSteps)) {
    saves += (theirs.end() - 1 - static_cast<std::ptrdiff_t>(count))->step.saves.size();
    if (count > 0 && saves > (count < kFewKnownSteps ? kMostMergedSaves : kMostKnownSaves)) break;
    ++count;
  }
  theirs.erase(theirs.begin(), theirs.end() - static_cast<std::ptrdiff_t>(count));
  return theirs;
}

std::vector<KeptSegments> merged_segments(std::vector<KeptSegments> ours,
                                          std::vector<KeptSegments> theirs) {
  std::erase_if(ours, [&](const KeptSegments& mine) {
    const auto found = std::ranges::find(theirs, mine.first, &KeptSegments::first);
    if (found == theirs.end()) return false;
    if (mine.ran) theirs.erase(found);
    return !mine.ran;
  });
  ours.insert(ours.end(), theirs.begin(), theirs.end());
  if (ours.size() > kMostSegments) ours.resize(kMostSegments);
  return ours;
}

}  // namespace

KeptPlans merged(KeptPlans ours, KeptPlans theirs) {
  return {.steps = merged_steps(std::move(ours.steps), std::move(theirs.steps)),
          .segments = merged_segments(std::move(ours.segments), std::move(theirs.segments)),
          .state_room = ours.state_room ? ours.state_room : theirs.state_room};
}

}  // namespace tierpilot::swap
