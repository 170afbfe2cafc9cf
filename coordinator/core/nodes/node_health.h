// What speaks against giving a node tasks: that it takes none, or could not start those it got. A
// task that one node cannot start is tried elsewhere; a node that cannot start several in a row is
// asked nothing for a while, then for one task at a time, until one has started (a circuit breaker:
// Nygard, Release It!, 2007). Pure; times are boot time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace tierpilot {

class NodeHealth {
 public:
  // Different tasks in a row: one task that cannot be started anywhere says little of a node.
  static constexpr size_t kStrikes = 3;
  static constexpr int64_t kFirstPause_ns = 2'000'000'000;
  static constexpr int64_t kLongestPause_ns = 120'000'000'000;

  // It could not start the task, or not serve its data, which it had `faults` times before
  // anywhere: until when it does not get it again.
  void keep_off(uint64_t task, uint32_t faults, int64_t now_ns);
  // It could not start the task for a reason of its own. True: it is asked nothing from now on.
  bool failed_to_start(uint64_t task, const std::string& why, int64_t now_ns);
  // It takes no tasks now. True: it is asked nothing from now on.
  bool refused(const std::string& why, int64_t now_ns);
  // A task has started there. True: it was not trusted before.
  bool started();
  // Ends what is over. True: it may be asked for more than before.
  bool tick(int64_t now_ns);

  // It is asked nothing.
  bool paused() const { return paused_until_ns_ > 0; }
  // It is asked for one task at a time.
  bool on_trial() const { return distrusted_ && !paused(); }
  bool keeps_off(uint64_t task) const { return kept_off_.contains(task); }
  // Empty while it is trusted.
  std::string why() const;

 private:
  void pause(const std::string& why, int64_t now_ns);

  std::map<uint64_t, int64_t> kept_off_;  // by task, until when
  std::set<uint64_t> strikes_;            // tasks that did not start since one did
  std::string why_;
  bool distrusted_ = false;
  int64_t pause_ns_ = 0;         // the last one's length
  int64_t paused_until_ns_ = 0;  // 0: it is not
};

}  // namespace tierpilot
