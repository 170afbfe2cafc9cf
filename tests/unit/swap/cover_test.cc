// A cover in haste does not end in pieces.
#include "policies/swap/cover.h"

#include <gtest/gtest.h>

#include "tests/unit/swap/skipping.h"

namespace tierpilot::swap {
namespace {

size_t absences(const Graph& graph, bool hurried) {
  const Timetable timetable(graph);
  Cover cover(graph, timetable,
              {.budget_bytes = baseline(graph).peak_bytes * 3 / 10, .hurried = hurried});
  size_t count = 0;
  for (const auto& list : cover.plan().absences) count += list.size();
  return count;
}

TEST(Cover, InHasteTakesNoMoreGapsThanThereWere) {
  const auto graph = skipping(400, 4, 1);
  const Timetable timetable(graph);
  size_t gaps = 0;
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    if (!graph.storages[storage].constant) gaps += timetable.uses(storage).size() - 1;
  EXPECT_GT(absences(graph, false), gaps) << "otherwise this shows nothing";
  EXPECT_LE(absences(graph, true), gaps);
}

}  // namespace
}  // namespace tierpilot::swap
