// A machine of processes that are made up: /proc and node memory in a folder, trackers that see
// what they are told.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "base/bytes.h"
#include "daemon/agent/paging/paging_worker.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/memory/fake_pages.h"

namespace tierpilot::agent {

constexpr uint64_t kFakeBase = 0x7f00'0000'0000;

// What the fake trackers of a machine share.
struct FakeHeat {
  std::vector<AccessSample> samples;
  std::set<pid_t> watched;
  size_t slots = 8;
  int sources = 0;  // that exist now
};

class FakeTracker final : public HeatTracker {
 public:
  FakeTracker(FakeHeat& heat, pid_t pid) : heat_(heat), pid_(pid) { heat_.watched.insert(pid); }
  ~FakeTracker() override { heat_.watched.erase(pid_); }
  const TrackerTraits& traits() const override { return traits_; }
  Status start() override { return {}; }
  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange>) override {
    return heat_.samples;
  }
  void stop() override {}

 private:
  FakeHeat& heat_;
  const pid_t pid_;
  TrackerTraits traits_{.kind = TrackerKind::kDamon, .ranks_pages = true};
};

class FakeSource final : public TrackerSource {
 public:
  FakeSource(FakeHeat& heat, Status available) : heat_(heat), available_(std::move(available)) {
    ++heat_.sources;
  }
  ~FakeSource() override { --heat_.sources; }
  TrackerOffer offer() const override {
    return {
        .traits = {.kind = TrackerKind::kDamon}, .available = available_, .way = "by a fake way"};
  }
  Status open() override { return available_; }
  Result<std::unique_ptr<HeatTracker>> make(pid_t pid) override {
    if (heat_.watched.size() == heat_.slots)
      return fail(ErrorCode::kExhausted, "no kdamond is left");
    return std::make_unique<FakeTracker>(heat_, pid);
  }

 private:
  FakeHeat& heat_;
  const Status available_;
};

struct FakeMachine {
  FakeMachine() {
    set_free(0, 1024 * kMiB);
    set_free(1, 1024 * kMiB);
  }

  void write(const std::string& path, const std::string& text) {
    const auto file = sysroot.resolve(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void set_free(int node, uint64_t bytes) {
    write(fmt::format("/sys/devices/system/node/node{}/meminfo", node),
          fmt::format("Node {} MemFree: {} kB\n", node, bytes >> 10));
  }
  // With its memory at kFakeBase; `started` tells it from others with the same number.
  void add_process(pid_t pid, pid_t parent, const std::string& name, uint64_t bytes,
                   uint64_t started = 100) {
    write(fmt::format("/proc/{}/stat", pid),
          fmt::format("{} ({}) S {} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 {} 0\n", pid, name,
                      parent, started, bytes / static_cast<uint64_t>(::getpagesize())));
    write(fmt::format("/proc/{}/comm", pid), name + "\n");
    write(fmt::format("/proc/{}/cgroup", pid), fmt::format("0::/slice/{}\n", name));
    write(fmt::format("/proc/{}/smaps", pid),
          fmt::format("{:x}-{:x} rw-p 00000000 00:00 0 \nRss: {} kB\nKernelPageSize: 4 kB\n",
                      kFakeBase, kFakeBase + bytes, bytes >> 10));
  }
  void end_process(pid_t pid) {
    std::filesystem::remove_all(sysroot.resolve(fmt::format("/proc/{}", pid)));
  }

  PagingEnvironment environment() {
    return {.sysroot = sysroot, .pacer = pacer, .kernel = pages, .make_trackers = [this] {
              std::vector<std::unique_ptr<TrackerSource>> sources;
              sources.push_back(std::make_unique<FakeSource>(heat, tracker));
              return std::make_unique<TrackerChoice>(std::move(sources));
            }};
  }

  static std::vector<PagingTier> two_tiers() {
    return {{.name = "node0", .nodes = {0}, .latency_ns = 100, .capacity_bytes = 1024 * kMiB},
            {.name = "node1", .nodes = {1}, .latency_ns = 400, .capacity_bytes = 1024 * kMiB}};
  }

  ScratchDirectory root;
  const Sysroot sysroot{root.path()};
  VirtualPacer pacer;
  FakePages pages;
  FakeHeat heat;
  Status tracker;  // the error: there is none, and why
};

}  // namespace tierpilot::agent
