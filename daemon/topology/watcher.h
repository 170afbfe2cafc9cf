// Keeps a topology up to date while memory is plugged in and out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/topology/topology.h"
#include "daemon/topology/uevent.h"

namespace tierpilot {

struct TopologyChange {
  Topology topology;
  std::vector<std::string> what;  // a sentence each, never empty
};

// Looks at the machine again when the kernel has announced something about memory, once that has
// been quiet for a while, and now and then all the same: announcements can be lost, and some
// containers get none. Owned by one thread:
//
//   when fd() is readable:        watcher.on_readable();
//   when next_check_ns() is over: if (auto change = watcher.check()) ...
class TopologyWatcher {
 public:
  struct Options {
    Sysroot sysroot{};
    int64_t quiet_ns = 300'000'000;            // of announcements, before a look
    int64_t longest_quiet_ns = 3'000'000'000;  // a look is not put off for longer
    int64_t poll_ns = 60'000'000'000;          // without announcements, where they can be had
    int64_t poll_deaf_ns = 5'000'000'000;      // where they cannot
  };

  // Listens to the kernel. `known` is what the caller has discovered; its GPUs are kept.
  TopologyWatcher(Options options, Topology known, const Clock& clock);
  // Without announcements, or with those the caller passes on through announced().
  TopologyWatcher(Options options, Topology known, const Clock& clock,
                  std::optional<UeventSocket> socket, std::string deaf_reason);

  // -1: there are no announcements.
  int fd() const { return socket_ ? socket_->fd() : -1; }
  // For people: how it learns of changes.
  std::string source() const;
  void on_readable();
  void announced();
  // By the clock's boot time.
  int64_t next_check_ns() const;
  // Nothing when it is not time yet, when nothing has changed, or when the machine, or a file of it
  // that could be read before, cannot be read just now (it is then tried again soon).
  std::optional<TopologyChange> check();

 private:
  std::optional<Topology> look();

  const Options options_;
  Topology known_;
  const Clock& clock_;
  std::optional<UeventSocket> socket_;
  std::string deaf_reason_;
  int64_t looked_ns_;
  bool read_all_ = true;  // by the latest look
  std::optional<int64_t> first_announced_ns_, last_announced_ns_;
};

}  // namespace tierpilot
