// The programs that time what waits for memory: direct reclaim and compaction.
#include <gtest/gtest.h>

#include "bpf/compaction.skel.h"
#include "bpf/reclaim.skel.h"
#include "tests/unit/probe/passive_programs.h"

namespace tierpilot {

template <>
void ProgramsRunByHand<tp_compaction>::set_knobs() {}

template <>
void ProgramsRunByHand<tp_reclaim>::set_knobs() {
  skeleton_->rodata->tp_event_ns = 0;
}

namespace {

class ReclaimPrograms : public ProgramsRunByHand<tp_reclaim> {
 protected:
  ReclaimStats stats() {
    return decode_reclaim(read_counters<tp_reclaim_stats>(skeleton_->maps.tp_reclaims));
  }
};

TEST_F(ReclaimPrograms, WaitsOfTheMachineAndOfGroupsAreApart) {
  ASSERT_EQ(run(skeleton_->progs.tp_direct_begin, {}), 0);
  ASSERT_EQ(run(skeleton_->progs.tp_direct_end, {32}), 0);
  ASSERT_EQ(run(skeleton_->progs.tp_memcg_begin, {}), 0);
  ASSERT_EQ(run(skeleton_->progs.tp_memcg_end, {5}), 0);
  ASSERT_EQ(run(skeleton_->progs.tp_kswapd_wake, {}), 0);
  const auto found = stats();
  EXPECT_EQ(found.direct.calls, 1u);
  EXPECT_EQ(found.direct.pages, 32u);
  EXPECT_EQ(found.direct.duration_ns.count(), 1u);
  EXPECT_EQ(found.memcg.pages, 5u);
  EXPECT_EQ(found.kswapd_wakes, 1u);
  EXPECT_EQ(events().size(), 2u) << "with a threshold of 0 ns each wait is an event";
}

TEST_F(ReclaimPrograms, WaitsOfATrackedGroupAreItsOwnToo) {
  ASSERT_EQ(run(skeleton_->progs.tp_direct_begin, {}), 0);
  ASSERT_EQ(run(skeleton_->progs.tp_direct_end, {8}), 0);
  const auto group = group_after<tp_reclaim_stats>(skeleton_->maps.tp_reclaim_grps, [&] {
    ASSERT_EQ(run(skeleton_->progs.tp_memcg_begin, {}), 0);
    ASSERT_EQ(run(skeleton_->progs.tp_memcg_end, {5}), 0);
  });
  EXPECT_EQ(decode_reclaim(group).memcg.pages, 5u);
  EXPECT_EQ(decode_reclaim(group).memcg.duration_ns.count(), 1u);
  EXPECT_EQ(decode_reclaim(group).direct.calls, 0u) << "it was not tracked then";
  EXPECT_EQ(stats().direct.calls, 1u);
}

TEST_F(ReclaimPrograms, AnEndWithoutBeginIsUntimed) {
  ASSERT_EQ(run(skeleton_->progs.tp_direct_end, {1}), 0);
  EXPECT_EQ(stats().untimed_calls, 1u);
  EXPECT_EQ(stats().direct.duration_ns.count(), 0u);
}

class CompactionPrograms : public ProgramsRunByHand<tp_compaction> {};

TEST_F(CompactionPrograms, ATaskThatCompactsWaits) {
  const auto group = group_after<tp_compact_stats>(skeleton_->maps.tp_compact_grps, [&] {
    ASSERT_EQ(run(skeleton_->progs.tp_compact_begin, {}), 0);
    ASSERT_EQ(run(skeleton_->progs.tp_compact_end, {}), 0);
    ASSERT_EQ(run(skeleton_->progs.tp_compact_end, {}), 0);
  });
  const auto machine = read_counters<tp_compact_stats>(skeleton_->maps.tp_compactions);
  for (const auto& found : {decode_compaction(group), decode_compaction(machine)}) {
    EXPECT_EQ(found.direct.zones, 2u);
    EXPECT_EQ(found.direct.duration_ns.count(), 1u);
    EXPECT_EQ(found.untimed_runs, 1u) << "an end without a begin";
    EXPECT_EQ(found.background.zones, 0u);
  }
}

}  // namespace
}  // namespace tierpilot
