// Asks the operator's health commands about the node's units, one unit after the other, in a thread
// of its own: a command may take its time, or hang in the driver of a broken device.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "daemon/exec/helper_program.h"

namespace tierpilot::agent {

struct HealthCheck {
  std::string unit;  // cpu/NUMBER, gpu/UUID
  HelperCall call;
};

class HealthChecks {
 public:
  struct Options {
    int64_t period_ms = 60'000;   // from the end of one round to the next
    int64_t timeout_ms = 30'000;  // of each command
  };
  struct Hooks {
    std::function<void(std::function<void()>)> post;  // to the loop, from any thread
    // On the loop, after each check: what is wrong with the unit; empty: nothing.
    std::function<void(const std::string& unit, const std::string& reason)> found;
  };

  HealthChecks(std::vector<HealthCheck> checks, Options options, Hooks hooks);
  // Ends a command that runs.
  ~HealthChecks();
  HealthChecks(const HealthChecks&) = delete;

 private:
  void run();
  void check(const HealthCheck& check);
  void pause();

  const std::vector<HealthCheck> checks_;
  const Options options_;
  const Hooks hooks_;
  std::map<std::string, LeftProcess> left_;  // by unit, that could not be killed
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace tierpilot::agent
