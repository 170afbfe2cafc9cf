// What a machine does beside and below what a test measures on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

namespace tierpilot::test {

// All CPUs' time between two looks.
struct CpuTime {
  static constexpr double kLeftAlone = 0.1;

  double busy_s = 0;
  double own_s = 0;     // of that, this process, all that come of it, and the kernel's threads
  double stolen_s = 0;  // of busy: taken by a virtual machine's host, from whoever was to run
  double all_s = 0;     // as many seconds each second as there are CPUs

  static CpuTime now();
  CpuTime operator-(const CpuTime& before) const {
    return {busy_s - before.busy_s, own_s - before.own_s, stolen_s - before.stolen_s,
            all_s - before.all_s};
  }
  double stolen_share() const { return stolen_s / all_s; }
  // Stolen time is in both: a process's time goes on while the host runs others.
  double others_share() const { return (busy_s - own_s) / all_s; }
  bool is_left_alone() const { return others_share() <= kLeftAlone; }
};

// By the system's clock, as the times of tasks.
struct Standstill {
  int64_t from_ms = 0;
  int64_t to_ms = 0;
};

// Sees when a folder's disk stands still: requests are under way and none ends for longer than any
// of them should take. Disks of virtual machines do that while their host is at something else.
// Sees nothing where the folder is on no single disk.
class DiskWatch {
 public:
  static constexpr int64_t kLeastMs = 50;

  explicit DiskWatch(const std::filesystem::path& folder);

  std::vector<Standstill> standstills() const;

 private:
  void watch(const std::stop_token& stop, const std::filesystem::path& stat);

  mutable std::mutex mutex_;
  std::vector<Standstill> standstills_;
  std::jthread thread_;
};

}  // namespace tierpilot::test
