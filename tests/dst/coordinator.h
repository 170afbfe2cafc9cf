// The real coordinator, without its wires, as a process that ends and starts again.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/service/core.h"
#include "tests/dst/disk.h"
#include "tests/dst/judge/judge.h"
#include "tests/dst/loop.h"
#include "tests/dst/session.h"

namespace tierpilot::dst {

class Coordinator {
 public:
  static constexpr int64_t kLeaseMs = 3'000;

  struct Surroundings {
    Loop& loop;
    Disk& disk;
    Judge& judge;
    Network& network;
    std::filesystem::path directory;  // for the store's lock
    uint64_t seed = 0;
  };
  explicit Coordinator(Surroundings surroundings);
  ~Coordinator();

  void start();
  bool up() const { return core_ != nullptr; }
  Core& core() { return *core_; }
  const LifePtr& life() const { return life_; }
  MachineClock& clock() { return clock_; }
  // Nodes of before its start may still join.
  bool awaits_nodes() const { return clock_.boot_ns() - began_ns_ < kLeaseMs * kMs; }

  // Ends and, after so long, starts.
  void kill(Disk::End how, int64_t down_ns);
  void stop(int64_t down_ns);
  void pause(int64_t ns) { life_->stop_until(at_.loop.now_ns() + ns); }
  void set_clock_by(int64_t ms);
  // Its machine stands still, and the clock with it.
  void freeze(int64_t ns);
  // Ends, and one of an older version is tried before it starts again.
  void downgrade(int64_t down_ns);
  void set_slow_disk(bool slow) { slow_disk_ = slow; }

  // What arrives at it. Runs in its life, on its event loop.
  void register_node(const ConnectionPtr& connection, NodeCalls& node, const Registration& what,
                     std::function<void(Result<std::shared_ptr<Session>>)> answer);
  // Something has run in it: what it writes is to be committed.
  void touched();
  // What users are told of ends, told to the judge.
  void look_at(uint64_t task);
  void look_at_all();

 private:
  enum class ClockSet { kUnnoticed, kNoticed, kWritten, kBootedSince };

  void look_at_any();
  void refuse_newer_store();
  void tick();
  void commit();
  void drop_everything(bool told);
  void start_later(int64_t down_ns);

  Surroundings at_;
  Random random_;
  Random looks_;  // which change nothing
  MachineClock clock_;
  LifePtr life_;
  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Core> core_;
  std::vector<std::weak_ptr<Connection>> connections_;
  int64_t began_ns_ = 0;  // boot time
  ClockSet clock_set_ = ClockSet::kWritten;
  bool boot_written_ = true;  // by which the times of tasks with promises are
  bool slow_disk_ = false;
  bool committing_ = false;
};

}  // namespace tierpilot::dst
