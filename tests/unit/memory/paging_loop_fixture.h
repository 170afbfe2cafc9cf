// The whole loop on a machine of two nodes that is made up: smaps and meminfo in a folder, pages in
// a map, accesses by decree, and virtual time.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/bytes.h"
#include "daemon/memory/loop/paging_loop.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/memory/fake_pages.h"

namespace tierpilot {

struct Decreed {
  std::vector<AccessSample> samples;
  bool alive = true;
  int watching = 0;
  double cpu_share = 0;  // of the kernel, at full effort
  double effort = 1;
  double observed_s = 0;  // by a sample
  bool ranks_pages = true;
  bool thread_ended = false;            // it then tells no CPU time any more
  std::function<Status()> meanwhile{};  // while a sample is waited for
  int looks = 0;
};

class DecreedTracker final : public HeatTracker {
 public:
  DecreedTracker(Decreed& decreed, const Clock& clock) : decreed_(decreed), clock_(clock) {
    ++decreed_.watching;
  }
  ~DecreedTracker() override { --decreed_.watching; }
  const TrackerTraits& traits() const override { return traits_; }
  Status start() override { return {}; }
  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange>) override {
    ++decreed_.looks;
    if (auto status = decreed_.meanwhile ? decreed_.meanwhile() : Status(); !status)
      return tl::unexpected(status.error());
    if (!decreed_.alive) return fail(ErrorCode::kNotFound, "process 1 has ended");
    return decreed_.samples;
  }
  void stop() override {}
  int64_t kernel_cpu_ns() const override {
    if (decreed_.thread_ended) return 0;
    const double elapsed_ns = static_cast<double>(clock_.boot_ns() - last_ns_);
    cpu_ns_ += elapsed_ns * decreed_.cpu_share * decreed_.effort;
    last_ns_ = clock_.boot_ns();
    return static_cast<int64_t>(cpu_ns_);
  }
  void scale_effort(double factor) override { decreed_.effort *= factor; }
  double observed_s() const override { return decreed_.observed_s; }

 private:
  Decreed& decreed_;
  const Clock& clock_;
  mutable int64_t last_ns_ = clock_.boot_ns();
  mutable double cpu_ns_ = 0;
  TrackerTraits traits_{.kind = TrackerKind::kDamon,
                        .resolution = {},
                        .blind_spots = {},
                        .effect = {},
                        .ranks_pages = decreed_.ranks_pages};
};

class DecreedSource final : public TrackerSource {
 public:
  explicit DecreedSource(const Clock& clock) : clock_(clock) {}
  TrackerOffer offer() const override { return {}; }
  Status open() override { return {}; }
  Result<std::unique_ptr<HeatTracker>> make(pid_t) override {
    return std::make_unique<DecreedTracker>(decreed, clock_);
  }
  Decreed decreed;

 private:
  const Clock& clock_;
};

struct PagingLoopFixture : ::testing::Test {
  static constexpr uint64_t kBase = 0x7f00'0000'0000;
  static constexpr uint64_t kSize = 64 * kMiB;

  PagingLoopFixture() {
    write_smaps(1, kBase, kBase + kSize);
    pages.map(kBase, kBase + kSize, 1);
    set_free(0, 32 * kMiB);
    set_free(1, 1024 * kMiB);
    heat(0, kSize / 4);
    options.limits.reserve_share = 0;
    options.cpu_share = 0;
    options.bytes_per_s = 8 * kMiB;
  }

  void write(const std::string& path, const std::string& text) {
    const auto file = sysroot.resolve(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void write_smaps(pid_t pid, uint64_t start, uint64_t end) {
    write(fmt::format("/proc/{}/smaps", pid),
          fmt::format("{:x}-{:x} rw-p 00000000 00:00 0 \nRss: {} kB\nKernelPageSize: 4 kB\n", start,
                      end, (end - start) >> 10));
  }
  void set_free(int node, uint64_t bytes) {
    write(fmt::format("/sys/devices/system/node/node{}/meminfo", node),
          fmt::format("Node {} MemFree: {} kB\n", node, bytes >> 10));
  }
  void heat(uint64_t from, uint64_t to) {
    trackers.decreed.samples = {{kBase + from, kBase + to, 50}};
  }

  std::unique_ptr<PagingLoop> make_loop(PagingMode mode = PagingMode::kEnforce,
                                        PagingGroup group = {.name = "g"}) {
    auto loop = std::make_unique<PagingLoop>(
        LoopEnvironment{.sysroot = sysroot,
                        .pacer = pacer,
                        .kernel = pages,
                        .trackers = trackers,
                        .tiers = {{.name = "fast", .nodes = {0}, .latency_ns = 100},
                                  {.name = "slow", .nodes = {1}, .latency_ns = 500}}},
        options);
    EXPECT_TRUE(loop->add({.pid = 1, .group = std::move(group), .mode = mode}));
    return loop;
  }

  void run(PagingLoop& loop, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      pacer.sleep_until(loop.run_round(), {});
      set_free(0, 32 * kMiB - std::min(pages.bytes_on(0), 32 * kMiB));
    }
  }

  ScratchDirectory root;
  Sysroot sysroot{root.path()};
  FakePages pages;
  VirtualPacer pacer;
  DecreedSource trackers{pacer};
  LoopOptions options;
};

}  // namespace tierpilot
