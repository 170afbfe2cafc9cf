// Trackers on made-up machines, and on this one as far as it has them.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/memory/heat/address_space.h"
#include "daemon/memory/heat/choose.h"
#include "daemon/memory/heat/fault_addresses.h"
#include "daemon/memory/heat/heat_map.h"
#include "daemon/memory/heat/numa_maps.h"
#include "daemon/memory/heat/soft_dirty.h"
#include "tests/unit/memory/damon_machine.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
using ChoiceTest = DamonMachine;

TEST_F(ChoiceTest, NumaHintsNeedNodesAndTheSetting) {
  FaultSource hints(TrackerKind::kNumaHint, sysroot, system_clock());
  write("/sys/devices/system/node/has_memory", "0");
  EXPECT_THAT(hints.offer().available.error().message, HasSubstr("one NUMA node"));
  write("/sys/devices/system/node/has_memory", "0-1");
  write("/proc/sys/kernel/numa_balancing", "0");
  EXPECT_THAT(hints.offer().available.error().message, HasSubstr("numa_balancing is 0"));
}

TEST_F(ChoiceTest, EveryOfferSaysWhatItSees) {
  for (const auto& offer : TrackerChoice(sysroot, system_clock()).offers()) {
    EXPECT_FALSE(offer.traits.resolution.empty());
    EXPECT_FALSE(offer.traits.blind_spots.empty());
    EXPECT_FALSE(offer.traits.effect.empty());
    EXPECT_EQ(tracker_from_name(tracker_name(offer.traits.kind)).value(), offer.traits.kind);
  }
  EXPECT_FALSE(tracker_from_name("crystal-ball"));
}

TEST_F(ChoiceTest, PicksTheFirstAvailableOrTheOneThatIsWanted) {
  make_damon();
  const TrackerChoice choice(sysroot, system_clock());
  const auto best = choice.choose();
  ASSERT_TRUE(best);
  EXPECT_EQ((*best)->offer().traits.kind, TrackerKind::kDamon);
  const auto hints = choice.choose(TrackerKind::kNumaHint);
  ASSERT_FALSE(hints);
  EXPECT_THAT(hints.error().message, HasSubstr("numa-hint: unavailable"));
}

TEST_F(ChoiceTest, SoftDirtyLooksFirstWhetherItMay) {
  SoftDirtySource source(sysroot, system_clock());
  EXPECT_EQ(source.may_watch(42).error().code, ErrorCode::kNotFound);
  write("/proc/42/clear_refs", "");
  EXPECT_TRUE(source.may_watch(42));
  EXPECT_TRUE(source.make(42));
  std::filesystem::permissions(sysroot.resolve("/proc/42/clear_refs"),
                               std::filesystem::perms::none);
  if (::geteuid() == 0) GTEST_SKIP() << "root may write every file";
  EXPECT_EQ(source.may_watch(42).error().code, ErrorCode::kDenied);
  EXPECT_FALSE(source.make(42));
}

TEST_F(ChoiceTest, LessThanAnEntryOfThePagemapIsAnError) {
  write("/proc/42/clear_refs", "");
  write("/proc/42/pagemap", "four");
  SoftDirtySource source(sysroot, system_clock());
  auto tracker = source.make(42).value();
  ASSERT_TRUE(tracker->start());
  const std::vector ranges{TrackedRange{0, kBasePageBytes}};
  const auto samples = tracker->sample(ranges);
  ASSERT_FALSE(samples);
  EXPECT_THAT(samples.error().message, HasSubstr("/proc/42/pagemap"));
}

TEST(SoftDirty, BlocksOfAlikePagesBecomeOneSample) {
  constexpr uint64_t kDirty = uint64_t{1} << 55;
  const std::vector<uint64_t> entries{0, kDirty, kDirty, 0, kDirty, kDirty, kDirty, 0};
  std::vector<AccessSample> samples;
  add_dirty_samples(entries, 0x10000, 1, 2, samples);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].start, 0x11000U);
  EXPECT_EQ(samples[0].end, 0x13000U);
  EXPECT_FLOAT_EQ(samples[0].accesses_per_page_s, 0.5);
  samples.clear();
  add_dirty_samples(entries, 0x10000, 4, 1, samples);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_FLOAT_EQ(samples[0].accesses_per_page_s, 0.5);
  EXPECT_FLOAT_EQ(samples[1].accesses_per_page_s, 0.75);
}

// Memory of this process, and the samples of a tracker that watches it.
struct OwnMemory {
  static constexpr size_t kPages = 1024;
  OwnMemory()
      : data(static_cast<char*>(::mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::madvise(data, kPages * 4096, MADV_NOHUGEPAGE);
  }
  ~OwnMemory() { ::munmap(data, kPages * 4096); }
  void touch(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) data[i * 4096] = 1;
  }
  TrackedRange range() const {
    const auto start = reinterpret_cast<uint64_t>(data);
    return {start, start + kPages * 4096};
  }
  uint64_t pages_seen(const std::vector<AccessSample>& samples, size_t first, size_t last) const {
    uint64_t seen = 0;
    const uint64_t from = range().start + first * 4096, to = range().start + last * 4096;
    for (const auto& sample : samples)
      if (sample.end > from && sample.start < to)
        seen += (std::min(sample.end, to) - std::max(sample.start, from)) / 4096;
    return seen;
  }
  char* data;
};

TEST(SoftDirty, SeesTheWritesOfThisProcess) {
  const Sysroot here;
  SoftDirtySource source(here, system_clock());
  if (const auto offer = source.offer(); !offer.available)
    GTEST_SKIP() << offer.available.error().message;
  OwnMemory memory;
  memory.touch(0, OwnMemory::kPages);
  auto tracker = source.make(::getpid()).value();
  ASSERT_TRUE(tracker->start());
  memory.touch(100, 200);
  const std::vector ranges{memory.range()};
  const auto samples = tracker->sample(ranges).value();
  EXPECT_EQ(memory.pages_seen(samples, 100, 200), 100U);
  EXPECT_EQ(memory.pages_seen(samples, 0, 100), 0U);
  EXPECT_EQ(memory.pages_seen(tracker->sample(ranges).value(), 0, OwnMemory::kPages), 0U);
}

TEST(FaultAddresses, AdjacentPagesOfOneCountBecomeOneSample) {
  const auto samples = samples_of_faults({{4096, 2}, {8192, 2}, {12288, 1}, {40960, 1}}, 2);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].end, 12288U);
  EXPECT_FLOAT_EQ(samples[0].accesses_per_page_s, 1);
  EXPECT_FLOAT_EQ(samples[2].accesses_per_page_s, 0.5);
}

TEST(FaultAddresses, SeeTheFirstTouchesOfThisProcess) {
  const Sysroot here;
  FaultSource source(TrackerKind::kFaultAddress, here, system_clock());
  if (const auto offer = source.offer(); !offer.available)
    GTEST_SKIP() << offer.available.error().message;
  if (const auto opened = source.open(); !opened) GTEST_SKIP() << opened.error().message;
  auto tracker = source.make(::getpid()).value();
  ASSERT_TRUE(tracker->start());
  OwnMemory memory;
  memory.touch(0, 512);
  const auto samples = tracker->sample({}).value();
  EXPECT_EQ(memory.pages_seen(samples, 0, 512), 512U);
  EXPECT_EQ(memory.pages_seen(samples, 512, 1024), 0U);
  EXPECT_EQ(memory.pages_seen(tracker->sample({}).value(), 0, 1024), 0U) << "each fault once";
  tracker->stop();
  memory.touch(512, 1024);
  EXPECT_TRUE(tracker->sample({}).value().empty());
}

constexpr std::string_view kSmaps =
    "5500-5700 r-xp 00000000 08:01 99   /usr/bin/some thing\n"
    "Size: 1 kB\nKernelPageSize:        4 kB\nRss:   400 kB\n"
    "7f0000000000-7f0000a00000 rw-p 00000000 00:00 0 \n"
    "Rss:  8192 kB\nAnonHugePages:     8192 kB\nKernelPageSize: 4 kB\nVmFlags: rd wr\n"
    "7f0000f00000-7f0001f00000 rw-p 00000000 00:00 0 [heap]\n"
    "Rss:  2048 kB\nKernelPageSize: 4 kB\nAnonHugePages: 0 kB\n"
    "7fff00000000-7fff00002000 r-xp 00000000 00:00 0 [vdso]\nRss: 8 kB\n";

TEST(AddressSpace, ReadsSmaps) {
  const auto mappings = parse_smaps(kSmaps).value();
  ASSERT_EQ(mappings.size(), 4U);
  EXPECT_EQ(mappings[0].name, "/usr/bin/some thing");
  EXPECT_EQ(mappings[1].huge_bytes, 8U << 20);
  EXPECT_EQ(mappings[2].name, "[heap]");
  EXPECT_EQ(mappings[2].resident_bytes, 2U << 20);
}

TEST(AddressSpace, TracksWhatIsWorthIt) {
  const auto ranges = trackable_ranges(parse_smaps(kSmaps).value());
  ASSERT_EQ(ranges.size(), 2U) << "neither program text nor the kernel's page";
  EXPECT_EQ(ranges[0].page_bytes, kHugePageBytes);
  EXPECT_EQ(ranges[1].page_bytes, kBasePageBytes);
}

TEST(AddressSpace, CutsOffWhatIsNoWholeHugePage) {
  const auto ranges = trackable_ranges({{.start = 0x7f0000001000,
                                         .end = 0x7f0000a01000,
                                         .permissions = "rw-p",
                                         .name = "",
                                         .resident_bytes = 8 << 20,
                                         .huge_bytes = 8 << 20}});
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[1].start, 0x7f0000200000U);
  EXPECT_EQ(ranges[1].page_bytes, kHugePageBytes);
  EXPECT_EQ(ranges[2].end - ranges[2].start, 4096U);
}

std::string mapping_text(uint64_t first_mib, uint64_t last_mib) {
  return fmt::format("{:x}-{:x} rw-p 00000000 00:00 0 \nRss: {} kB\nKernelPageSize: 4 kB\n",
                     first_mib << 20, last_mib << 20, (last_mib - first_mib) << 10);
}

// The kernel writes smaps in pieces, and begins each where the one before ended or at the start of
// what has grown over that place.
TEST(AddressSpace, WhatGrewWhileItWasReadCountsOnce) {
  const auto grown = parse_smaps(mapping_text(1, 4) + mapping_text(1, 9) + mapping_text(9, 10));
  ASSERT_EQ(grown.value().size(), 2U);
  EXPECT_EQ(grown->at(0).end, 9U << 20);
  EXPECT_EQ(grown->at(0).resident_bytes, 8U << 20);
  const auto joined = parse_smaps(mapping_text(1, 4) + mapping_text(4, 6) + mapping_text(1, 9));
  ASSERT_EQ(joined.value().size(), 1U);
  EXPECT_EQ(joined->at(0).bytes(), 8U << 20);
  const auto cut = parse_smaps(mapping_text(1, 8) + mapping_text(4, 9) + mapping_text(5, 7));
  ASSERT_EQ(cut.value().size(), 2U);
  EXPECT_EQ(cut->at(0).end, cut->at(1).start);
  EXPECT_EQ(cut->at(1).end, 9U << 20);
}

TEST(AddressSpace, TheHeatOfWhatGrewIsKnown) {
  const auto mappings = parse_smaps(mapping_text(256, 260) + mapping_text(256, 272)).value();
  const auto ranges = trackable_ranges(mappings);
  HeatMap heat;
  heat.track(ranges);
  heat.update(std::vector<AccessSample>{{256 << 20, 257 << 20, 900}}, 1);
  EXPECT_EQ(heat.tracked_bytes(), 16U << 20);
  uint64_t last = 0;
  for (const auto& region : heat.regions()) {
    EXPECT_LE(last, region.start);
    last = region.end;
  }
  EXPECT_FLOAT_EQ(heat.regions().front().heat, 900);
}

constexpr std::string_view kHugetlbSmaps =
    "7f0000000000-7f0004000000 rw-p 00000000 00:0f 12345   /anon_hugepage (deleted)\n"
    "KernelPageSize:     2048 kB\nRss:                   0 kB\nAnonHugePages:         0 kB\n"
    "Shared_Hugetlb:        0 kB\nPrivate_Hugetlb:   65536 kB\n"
    "7f0080000000-7f00c0000000 rw-s 00000000 00:0f 12346   /dev/hugepages/x\n"
    "KernelPageSize:  1048576 kB\nRss: 0 kB\nShared_Hugetlb:  1048576 kB\nPrivate_Hugetlb: 0 kB\n"
    "7f0100000000-7f0100200000 r--p 00000000 00:0f 12347   /dev/hugepages/text\n"
    "KernelPageSize:  2048 kB\nRss: 0 kB\nShared_Hugetlb:  2048 kB\n";

TEST(AddressSpace, HugetlbfsIsResidentAndTrackedByItsPages) {
  const auto mappings = parse_smaps(kHugetlbSmaps).value();
  ASSERT_EQ(mappings.size(), 3U);
  EXPECT_EQ(mappings[0].resident_bytes, 64U << 20);
  EXPECT_EQ(mappings[1].resident_bytes, 1U << 30);
  const auto ranges = trackable_ranges(mappings);
  ASSERT_EQ(ranges.size(), 2U) << "no mapped files";
  EXPECT_EQ(ranges[0].bytes(), 64U << 20);
  EXPECT_EQ(ranges[0].page_bytes, kHugePageBytes);
  EXPECT_EQ(ranges[1].page_bytes, 1U << 30);
  EXPECT_EQ(trackable_ranges(mappings, {.file_backed = true}).size(), 3U);
}

// A folder in its place can be opened, and not be read.
TEST_F(ChoiceTest, MapsThatCannotBeReadAreErrorsThatNameThem) {
  for (const char* file : {"/proc/42/smaps", "/proc/42/numa_maps"})
    std::filesystem::create_directories(sysroot.resolve(file));
  const auto mappings = read_mappings(sysroot, 42);
  ASSERT_FALSE(mappings);
  EXPECT_THAT(mappings.error().message, HasSubstr(sysroot.resolve("/proc/42/smaps").string()));
  const auto nodes = read_numa_maps(sysroot, 42);
  ASSERT_FALSE(nodes);
  EXPECT_THAT(nodes.error().message, HasSubstr(sysroot.resolve("/proc/42/numa_maps").string()));
  write("/proc/43/numa_maps", "1000 default N0=5\n");
  EXPECT_EQ(read_numa_maps(sysroot, 43).value().size(), 1U);
  EXPECT_EQ(read_numa_maps(sysroot, 44).error().code, ErrorCode::kNotFound);
}

TEST(AddressSpace, NonsenseIsInvalid) {
  for (const char* text :
       {"Rss: 4 kB\n", "zz-yy rw-p\n", "2000-1000 rw-p 0 0 0\n", "1000-2000\n",
        "1000-2000 rw-p 0 0 0\nRss: x kB\n", "1000-2000 rw-p 0 0 0\nKernelPageSize: 3 kB\n",
        "1000-2000 rw-p 0 0 0\nRss: 99999999999999999999 kB\n", "\n"})
    EXPECT_FALSE(parse_smaps(text)) << text;
  EXPECT_TRUE(parse_smaps("").value().empty());
}

TEST(AddressSpace, ReadsThisProcess) {
  const auto mappings = read_mappings(Sysroot(), ::getpid());
  ASSERT_TRUE(mappings) << mappings.error().message;
  EXPECT_GT(mappings->size(), 5U);
  EXPECT_EQ(read_mappings(Sysroot(), 0x3fffffff).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tierpilot
