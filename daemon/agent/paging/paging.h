// Paging of pages as a part of the node: a thread of its own that nothing waits for, and none on
// a machine where it has nothing to do.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/agent/calibration/calibration.h"
#include "daemon/agent/metrics/metrics.h"
#include "daemon/agent/paging/paging_worker.h"
#include "daemon/memory/loop/tiers.h"

namespace tierpilot::agent {

// Of the measured latencies of this node's memory, where there are any. What differs by less than
// the spread of its measurement is one tier: nothing is moved for noise.
TierSet paging_tiers(const Topology& topology, const Calibration& calibration);

// Owned by one thread, which makes all calls. Made after the process has done its forking.
class Paging {
 public:
  Paging(const PagingConfig& config, const PagingEnvironment& environment, TierSet tiers);
  ~Paging();

  const std::vector<PagingTier>& tiers() const { return tiers_.tiers; }
  // After tiers were measured again, or came or went.
  void set_tiers(TierSet tiers);
  void task_started(const PlacedTask& task);
  void task_ended(AttemptId attempt);

  // Whether pages are placed here, with what, and what of the kernel works against it; or why not.
  SubjectState feature() const;
  std::vector<MetricValue> metrics() const;

 private:
  using Work = std::function<void(PagingWorker&)>;

  std::string why_off() const;
  void look_around();
  void begin();
  void post(Work work);
  void run(std::stop_token stop, std::vector<PagingTier> tiers);

  const PagingConfig& config_;
  const PagingEnvironment environment_;
  TierSet tiers_;
  std::map<AttemptId, PlacedTask> tasks_;
  std::string tracker_;                 // the best on offer, or why there is none
  std::vector<std::string> conflicts_;  // with the kernel's own placement

  std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable_any wake_;
  std::vector<Work> inbox_;
  mutable std::mutex state_mutex_;
  PagingState state_;  // guarded by state_mutex_
  std::jthread thread_;
};

}  // namespace tierpilot::agent
