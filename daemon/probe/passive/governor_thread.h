// Keeps programs within their share of a CPU, from a thread of its own: detaching one at a function
// waits until no task can be running in it any more, 0.1 s and at times much longer.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/probe/passive/cost_governor.h"

namespace tierpilot {

// Called from the governor's thread only.
class GovernedPrograms {
 public:
  // That they have run in since they were loaded.
  virtual uint64_t calls() const = 0;
  // After a failure nothing is attached.
  virtual Status attach() = 0;
  virtual void detach() = 0;

 protected:
  ~GovernedPrograms() = default;
};

class GovernorThread {
 public:
  // `programs` are attached, and outlive it.
  GovernorThread(GovernedPrograms& programs, const CostGovernor::Options& options);

  // Of the time since it was made.
  double attached_share() const;

 private:
  void run(const std::stop_token& stop);
  void wait(const std::stop_token& stop, int64_t ns);
  void attach();
  void detach();
  void note(bool attached);

  const Clock& clock_ = system_clock();
  GovernedPrograms& programs_;
  CostGovernor governor_;
  const int64_t start_ns_;
  bool refused_ = false;

  mutable std::mutex mutex_;
  std::condition_variable_any stopping_;
  bool attached_ = true;
  int64_t since_ns_;
  int64_t attached_ns_ = 0;  // before since_ns_

  std::jthread thread_;  // last: it uses all of them
};

}  // namespace tierpilot
