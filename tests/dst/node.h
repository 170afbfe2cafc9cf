// A node: a machine with a disk, and its daemons one after another.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/dst/daemon.h"

namespace tierpilot::dst {

class Node {
 public:
  struct Surroundings {
    Loop& loop;
    Judge& judge;
    Network& network;
    Coordinator& coordinator;
    int node = 0;
    uint64_t seed = 0;
    bool keeps_old_home = false;
    bool notices_pauses = true;
    bool tells_kept_ends = true;
    std::function<const Stored*(int reader, const std::string& address, const DatasetId& id)>
        remote;
    std::function<void(const std::string& address, const DatasetId& id)> suspect;
    std::function<void(const DatasetId& id)> lost;
    SharedUnits shared_units;
    SwapTiers swap_tiers;
  };
  explicit Node(Surroundings surroundings);

  void kill(int64_t down_ns);
  void reboot(int64_t down_ns);
  int number() const { return at_.node; }
  std::string name() const { return fmt::format("n{}", at_.node + 1); }
  // The machine is replaced by one of the same name.
  void lose_disk(int64_t down_ns);
  void stop(int64_t down_ns);
  void pause(int64_t ns);
  // The machine stands still, and its clocks with it.
  void freeze(int64_t ns);
  // Its daemon is restarted as one of another version, and again as one of today.
  void change_version(Version version, int64_t lasts_ns);
  // Its daemon is restarted with so many tenths of its tiers, and again with all.
  void take_swap_room(uint64_t tenths, int64_t lasts_ns);
  // The bytes of some dataset on its disk are other ones from now on.
  void damage(uint64_t which);
  void suspect(const DatasetId& id);
  void evict();
  // Its reads and writes fail so often for so long.
  void fail_disk(double share, int64_t ns);
  bool disk_fails() {
    return at_.loop.now_ns() < disk_fails_until_ns_ && errors_.chance(disk_errors_);
  }
  // It has no room for more for so long.
  void fill_disk(int64_t ns) { disk_full_until_ns_ = at_.loop.now_ns() + ns; }
  void refuse_starts(int64_t ns) { refuses_until_ns_ = at_.loop.now_ns() + ns; }
  // When it is next in a commit, at this step.
  void kill_in_commit(uint64_t step, bool reboots, int64_t down_ns);
  // When the next end of a task is on its disk and nobody knows.
  void kill_at_end(int64_t down_ns) { killed_at_end_ns_ = down_ns; }
  // It will tell so, if it is up.
  void fail_unit(uint64_t number);
  // What runs on one of its shared GPUs ends; for so long it takes nothing.
  void fail_gpu(uint64_t number, int64_t lost_ns);
  // Whatever goes on, it goes on without faults from now on.
  void heal();

  bool up() const { return daemon_ && daemon_->life()->alive; }
  bool answers() const { return up() && daemon_->life()->stopped_until_ns <= at_.loop.now_ns(); }
  // All the time since then: what ended here is still waited for.
  bool is_leased_since(int64_t ns) const {
    return ns > unleased_until_ns_ && clock_.boot_ns() < lease_ns_;
  }
  const Shelf& shelf() const { return shelf_; }
  // Of a commit that failed, with a reboot: nobody was ever told of it.
  bool came_back(const DatasetId& id) const { return came_back_.contains(id); }
  const Daemon& daemon() const { return *daemon_; }
  const SharedUnits& shared_units() const { return at_.shared_units; }
  // Of room for swapping its daemons in this run have offered, or will.
  uint64_t most_swap_bytes() const { return offered_bytes(at_.swap_tiers); }
  uint64_t least_swap_bytes() const { return least_swap_bytes_; }

 private:
  void start();
  void start_later(int64_t down_ns);
  void at_commit_step(int step);
  void leased(int64_t deadline_ns);

  Surroundings at_;
  Random random_;
  Random errors_;
  MachineClock clock_;
  LifePtr machine_;
  Shelf shelf_;
  Shelf half_synced_;  // what a reboot may bring back
  std::set<DatasetId> came_back_;
  KeptEnds ends_;
  std::vector<uint64_t> instances_;
  int64_t lease_ns_ = 0;           // until when, by the machine's boot clock
  int64_t unleased_until_ns_ = 0;  // the last time that it had none, or that nobody can be sure
  std::unique_ptr<Daemon> daemon_;
  // What waits in the loop may still point to them.
  std::vector<std::unique_ptr<Daemon>> gone_;
  int64_t refuses_until_ns_ = 0;
  int64_t disk_fails_until_ns_ = 0;
  double disk_errors_ = 0;
  int64_t disk_full_until_ns_ = 0;
  struct Trap {
    int step = -1;
    bool reboots = false;
    int64_t down_ns = 0;
  };
  Trap trap_;
  std::optional<int64_t> killed_at_end_ns_;
  Version version_ = Version::kCurrent;
  SwapTiers swap_tiers_ = at_.swap_tiers;
  uint64_t least_swap_bytes_ = most_swap_bytes();
  bool starting_ = false;
  int unit_faults_ = 0;
  std::map<std::string, int64_t> gpu_lost_until_ns_;
};

}  // namespace tierpilot::dst
