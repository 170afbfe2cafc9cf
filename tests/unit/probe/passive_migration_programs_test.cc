// The programs that count calls which move pages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "bpf/migration.skel.h"
#include "bpf/pairs.h"
#include "daemon/probe/passive/owners.h"
#include "tests/unit/probe/passive_programs.h"

namespace tierpilot {

template <>
void ProgramsRunByHand<tp_migration>::set_knobs() {
  skeleton_->rodata->tp_event_pages = 100;
  skeleton_->rodata->tp_pair_nodes = 2;
  bpf_map__set_max_entries(skeleton_->maps.tp_migr_pairs, tp_pair_count(2));
}

namespace {

constexpr uint64_t kAsync = 0, kSyscall = 3;

class MigrationPrograms : public ProgramsRunByHand<tp_migration> {
 protected:
  void start(uint64_t reason) {
    ASSERT_EQ(run(skeleton_->progs.tp_migr_start, {kAsync, reason}), 0);
  }
  void end(uint64_t moved, uint64_t failed, uint64_t reason) {
    ASSERT_EQ(run(skeleton_->progs.tp_migr_end8, {moved, failed, 0, 0, 0, 0, kAsync, reason}), 0);
  }
  MigrationCounts counts(const std::vector<tp_migrate_counts>& table) {
    return decode_pairs(table, kNodes, {{kDemotion, "MR_DEMOTION"}, {kSyscall, "MR_SYSCALL"}});
  }
  std::vector<tp_migrate_counts> machine() {
    const auto copies = read_array<tp_migrate_counts>(skeleton_->maps.tp_migr_pairs);
    std::vector<tp_migrate_counts> table(tp_pair_count(kNodes));
    const size_t cpus = copies.size() / table.size();
    for (size_t i = 0; i < copies.size(); i += cpus)
      table[i / cpus] = sum_cpus(std::span(copies).subspan(i, cpus));
    return table;
  }
  // Elements that can have counts of an owner, as the daemon finds them.
  std::vector<uint32_t> used() {
    const auto table = machine();
    return used_elements<tp_migrate_counts>(
        table, [](const tp_migrate_counts& counts) { return counts.calls > 0; });
  }
  MigrationStats stats() {
    return decode_migration(read_counters<tp_migrate_stats>(skeleton_->maps.tp_migrations),
                            counts(machine()));
  }

  // As the programs at the function begin a call of this thread, with one nested in it.
  void begin(const tp_migrate_call& outer, const tp_migrate_call& inner) {
    const auto tid = static_cast<uint32_t>(::gettid());
    tp_migrate_set set{};
    set.tids[0] = tid;
    set.slots[0] = {
        .depth = 2, .start_ns = 1, .weight = 1, .left = 0, .drawn = 0, .calls = {outer, inner}};
    put_set(set);
  }
  // Of this thread.
  void put_set(const tp_migrate_set& set) {
    const uint32_t index = static_cast<uint32_t>(::gettid()) % TP_MIGRATING_SETS;
    ASSERT_TRUE(put_element(skeleton_->maps.tp_migrating, index, std::vector{set}));
  }
  tp_migrate_set get_set() {
    std::vector<tp_migrate_set> set(1);
    const uint32_t index = static_cast<uint32_t>(::gettid()) % TP_MIGRATING_SETS;
    EXPECT_TRUE(get_element(skeleton_->maps.tp_migrating, index, set));
    return set[0];
  }
  // Fills the table of owners' counters.
  int put_owned(uint32_t index) {
    const tp_owner_key key{.owner = 1, .index = index, .zero = 0};
    const tp_migrate_counts counts{};
    return bpf_map__update_elem(skeleton_->maps.tp_migr_owned, &key, sizeof key, &counts,
                                sizeof counts, BPF_ANY);
  }
  static constexpr uint32_t kNodes = 2;
};

TEST_F(MigrationPrograms, ACallIsCountedAndTimed) {
  start(kDemotion);
  end(40, 2, kDemotion);
  const auto found = stats();
  EXPECT_EQ(found.total.calls, 1u);
  EXPECT_EQ(found.total.pages_moved, 40u);
  EXPECT_EQ(found.total.pages_failed, 2u);
  EXPECT_EQ(found.by_reason.size(), 1u);
  EXPECT_EQ(found.by_reason.at("MR_DEMOTION").pages_moved, 40u);
  EXPECT_EQ(found.duration_ns.count(), 1u);
  EXPECT_GT(found.by_reason.at("MR_DEMOTION").busy_ns, 0u);
  EXPECT_EQ(found.untimed_calls, 0u);
  EXPECT_TRUE(events().empty()) << "42 pages are fewer than the 100 of the knob";
}

TEST_F(MigrationPrograms, OnlyTheOutermostOfNestedCallsIsTimed) {
  start(kSyscall);
  start(kDemotion);
  end(1, 0, kDemotion);
  end(2, 0, kSyscall);
  const auto found = stats();
  EXPECT_EQ(found.total.calls, 2u);
  EXPECT_EQ(found.duration_ns.count(), 1u);
  EXPECT_EQ(found.untimed_calls, 1u);
  EXPECT_EQ(found.by_reason.at("MR_DEMOTION").busy_ns, 0u);
  EXPECT_GT(found.by_reason.at("MR_SYSCALL").busy_ns, 0u);
}

TEST_F(MigrationPrograms, AnEndWithoutStartIsUntimed) {
  end(7, 0, kSyscall);
  EXPECT_EQ(stats().untimed_calls, 1u);
  EXPECT_EQ(stats().duration_ns.count(), 0u);
}

TEST_F(MigrationPrograms, ANestedCallFindsItsSlotBehindAFreeOne) {
  const auto tid = static_cast<uint32_t>(::gettid());
  tp_migrate_set set{};
  set.tids[1] = tid + TP_MIGRATING_SETS;
  set.tids[2] = tid;
  set.slots[2] = {.depth = 1, .start_ns = 1, .weight = 1, .left = 0, .drawn = 0, .calls = {}};
  put_set(set);
  start(kDemotion);
  EXPECT_EQ(get_set().tids[0], 0u);
  end(1, 0, kDemotion);
  end(2, 0, kSyscall);
  EXPECT_EQ(stats().duration_ns.count(), 1u);
  EXPECT_EQ(stats().untimed_calls, 1u);
  EXPECT_EQ(get_set().tids[1], tid + TP_MIGRATING_SETS) << "another thread's";
  EXPECT_EQ(get_set().tids[2], 0u);
}

TEST_F(MigrationPrograms, WhatIsLeftInAFreeSlotDoesNotMatter) {
  tp_migrate_set set{};
  for (auto& slot : set.slots)
    slot = {.depth = 7, .start_ns = 1, .weight = 9, .left = 0, .drawn = 0, .calls = {}};
  put_set(set);
  start(kDemotion);
  end(1, 0, kDemotion);
  EXPECT_EQ(stats().duration_ns.count(), 1u);
  EXPECT_EQ(stats().untimed_calls, 0u);
}

TEST_F(MigrationPrograms, ACallThatFindsNoFreeSlotIsLost) {
  tp_migrate_set set{};
  for (uint32_t way = 0; way < TP_MIGRATING_WAYS; ++way)
    set.tids[way] = static_cast<uint32_t>(::gettid()) + (way + 1) * TP_MIGRATING_SETS;
  put_set(set);
  start(kDemotion);
  end(1, 0, kDemotion);
  EXPECT_EQ(skeleton_->bss->tp_lost_calls, 1u);
  EXPECT_EQ(stats().untimed_calls, 1u);
  EXPECT_EQ(stats().total.calls, 1u) << "it is counted all the same";
  EXPECT_EQ(std::memcmp(get_set().tids, set.tids, sizeof set.tids), 0) << "others' slots";
}

TEST_F(MigrationPrograms, WhileNotObservingCallsEndUncountedAndGiveBackTheirSlots) {
  start(kDemotion);
  skeleton_->data->tp_observing = false;
  end(1, 0, kDemotion);
  EXPECT_EQ(stats().total.calls, 0u);
  EXPECT_EQ(get_set().tids[0], 0u);
}

TEST_F(MigrationPrograms, CallsAreCountedForTheirCost) {
  start(kSyscall);
  start(kDemotion);
  end(1, 0, kDemotion);
  end(2, 0, kSyscall);
  EXPECT_EQ(skeleton_->bss->tp_calls, 2u) << "the nested one, too";
  begin({.nodes = {0, 1}, .owner = 0}, {.nodes = {0, 1}, .owner = 0});
  auto set = get_set();
  set.slots[0].depth = 1;
  set.slots[0].weight = 8;
  put_set(set);
  end(1, 0, kSyscall);
  EXPECT_EQ(skeleton_->bss->tp_calls, 10u) << "a timed one of eight stands for all";
}

TEST_F(MigrationPrograms, LargeCallsAreEvents) {
  start(kDemotion);
  end(90, 10, kDemotion);
  const auto found = events();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].detail, "MR_DEMOTION");
  EXPECT_EQ(found[0].pages, 90u);
  EXPECT_EQ(found[0].pages_failed, 10u);
  EXPECT_GT(found[0].duration_ns.value_or(0), 0u);
  EXPECT_GT(found[0].end_boot_ns, 0);
}

TEST_F(MigrationPrograms, CallsAreCountedByTheirNodes) {
  begin({.nodes = {0, 1}, .owner = 0}, {.nodes = {1, TP_NO_NODE}, .owner = 0});
  end(3, 0, kDemotion);
  end(40, 2, kSyscall);
  const auto found = stats();
  ASSERT_EQ(found.pairs.size(), 2u);
  const auto& outer = found.pairs[0];
  EXPECT_EQ(outer.from_node, 0);
  EXPECT_EQ(outer.to_node, 1);
  const auto& counts = outer.by_reason.at("MR_SYSCALL");
  EXPECT_EQ(counts.calls, 1u);
  EXPECT_EQ(counts.pages_moved, 40u);
  EXPECT_EQ(counts.pages_failed, 2u);
  EXPECT_EQ(counts.timed_pages, 40u);
  EXPECT_GT(counts.busy_ns, 0u);
  const auto& inner = found.pairs[1];
  EXPECT_EQ(inner.from_node, 1);
  EXPECT_FALSE(inner.to_node);
  EXPECT_EQ(inner.total.pages_moved, 3u);
  EXPECT_EQ(inner.total.timed_pages, 0u) << "its time is in the outer call's";
}

TEST_F(MigrationPrograms, NodesThatAreNotToldApartAreTheUnknownOne) {
  begin({.nodes = {7, TP_NO_NODE}, .owner = 0}, {.nodes = {0, 63}, .owner = 0});
  end(3, 0, kDemotion);
  end(40, 2, kDemotion);
  const auto found = stats();
  ASSERT_EQ(found.pairs.size(), 2u);
  EXPECT_FALSE(found.pairs[0].from_node || found.pairs[0].to_node);
  EXPECT_EQ(found.pairs[0].total.pages_moved, 40u);
  EXPECT_EQ(found.pairs[1].from_node, 0);
  EXPECT_FALSE(found.pairs[1].to_node);
  EXPECT_EQ(found.total.pages_moved, 43u) << "the total is that of all pairs";
}

TEST_F(MigrationPrograms, TrackedOwnersHaveCountersOfTheirOwn) {
  Owners<tp_migrate_counts> owners(skeleton_->maps.tp_migr_owners, skeleton_->maps.tp_migr_owned,
                                   tp_pair_count(kNodes));
  constexpr uint64_t kMine = 4711, kOther = 4712;
  std::vector<uint32_t> all(tp_pair_count(kNodes));
  std::iota(all.begin(), all.end(), 0);
  ASSERT_TRUE(owners.track(kMine));
  for (const uint64_t owner : {kMine, kOther}) {
    begin({.nodes = {0, 1}, .owner = owner}, {.nodes = {1, 0}, .owner = kMine});
    end(3, 1, kDemotion);
    end(40, 2, kSyscall);
  }
  const auto mine = counts(owners.read(kMine, used()));
  ASSERT_EQ(mine.pairs.size(), 2u);
  EXPECT_EQ(mine.pairs[0].by_reason.at("MR_SYSCALL").pages_moved, 40u);
  EXPECT_EQ(mine.pairs[0].by_reason.at("MR_SYSCALL").pages_failed, 2u);
  EXPECT_GT(mine.pairs[0].total.busy_ns, 0u);
  EXPECT_EQ(mine.pairs[1].by_reason.at("MR_DEMOTION").pages_moved, 6u);
  EXPECT_EQ(owners.lost(kMine), 0u);
  EXPECT_FALSE(owners.lost(kOther)) << "nobody tracks it";
  EXPECT_TRUE(counts(owners.read(kOther, all)).pairs.empty());
  EXPECT_EQ(stats().total.pages_moved, 86u) << "the machine's";
  owners.untrack(kMine, [&] { return used(); });
  EXPECT_TRUE(counts(owners.read(kMine, all)).pairs.empty());
}

TEST_F(MigrationPrograms, WhatFindsNoRoomIsCounted) {
  Owners<tp_migrate_counts> owners(skeleton_->maps.tp_migr_owners, skeleton_->maps.tp_migr_owned,
                                   tp_pair_count(kNodes));
  constexpr uint64_t kMine = 4711;
  ASSERT_TRUE(owners.track(kMine));
  const auto entries = bpf_map__max_entries(skeleton_->maps.tp_migr_owned);
  for (uint32_t i = 0; i < entries; ++i) ASSERT_EQ(put_owned(i), 0);
  begin({.nodes = {0, 1}, .owner = kMine}, {.nodes = {1, 0}, .owner = kMine});
  end(1, 0, kSyscall);
  end(1, 0, kSyscall);
  EXPECT_EQ(owners.lost(kMine), 2u);
  EXPECT_EQ(stats().total.calls, 2u);
}

TEST_F(MigrationPrograms, UnknownReasonsStayInBounds) {
  end(1, 0, 12345);
  ASSERT_EQ(run(skeleton_->progs.tp_migr_end8, {1, 0, 0, 0, 0, 0, UINT64_MAX, UINT64_MAX}), 0);
  EXPECT_EQ(stats().by_reason.size(), 1u);
  EXPECT_EQ(stats().by_reason.at("#15").pages_moved, 2u);
}

TEST_F(MigrationPrograms, KernelsBefore66PassSevenArguments) {
  ASSERT_EQ(run(skeleton_->progs.tp_migr_end7, {5, 1, 0, 0, 0, kAsync, kSyscall}), 0);
  EXPECT_EQ(stats().by_reason.at("MR_SYSCALL").pages_moved, 5u);
}

}  // namespace
}  // namespace tierpilot
