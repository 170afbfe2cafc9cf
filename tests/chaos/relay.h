// Stands between a daemon and the coordinator and passes their bytes on, unless a way is cut: a
// partition, one way or both, or a slow link, without privileges. Nothing is lost: what was held
// back arrives late.
#pragma once

#include <atomic>
#include <filesystem>
#include <list>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace tierpilot::chaos {

class Relay {
 public:
  // Listens at `own` and connects to `other`, both paths of Unix sockets.
  Relay(const std::filesystem::path& own, std::filesystem::path other);
  ~Relay();

  void cut(bool to_coordinator, bool from_coordinator) {
    cut_up_ = to_coordinator;
    cut_down_ = from_coordinator;
  }
  void slow(bool slow) { slow_ = slow; }

 private:
  struct Pair {
    UniqueFd daemon, coordinator;
    bool over = false;
  };
  void run();
  void accept_one();
  static bool pass_on(int from, int to, size_t most_bytes);

  std::filesystem::path other_;
  UniqueFd listener_;
  std::list<Pair> pairs_;  // of the thread
  std::atomic<bool> cut_up_ = false, cut_down_ = false, slow_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace tierpilot::chaos
