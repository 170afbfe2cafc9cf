// The same training jobs on one node whose units they share, by one policy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/demo/demo_cluster.h"
#include "tools/demo/training_stage.h"

namespace tierpilot::demo {

struct SharingPlan {
  std::string name;
  std::string card;  // JSON
  uint32_t iterations = 0;
  bool latency_sensitive = false;
  double arrival_s = 0;
};

// What is known of a job, while it runs and afterwards. Utilisations are parts of a unit.
struct SharingJob {
  SharingPlan plan;
  uint64_t id = 0;  // 0: not submitted yet
  std::string state;
  std::string reason;
  double submitted_s = 0;  // since 1970, as all times of day
  double finished_s = 0;
  double share = 0;
  double predicted_utilisation = 0;
  std::optional<double> measured_utilisation;
  std::optional<double> predicted_s;
  std::optional<double> left_s;
  std::optional<double> promise_s;          // since it was submitted; nothing: none was asked for
  std::optional<double> refused_promise_s;  // that could not be made
  std::string refusal;                      // why
  uint32_t preemptions = 0;
  // Of the last try, and of those before, which ended when it was preempted. As it was looked at.
  struct Try {
    uint32_t attempt = 0;
    double ran_s = 0, cpu_s = 0;
  };
  Try last_try, before;
  uint64_t iteration = 0;

  bool has_ended() const {
    return state == "succeeded" || state == "failed" || state == "cancelled";
  }
  double ran_s() const { return before.ran_s + last_try.ran_s; }
  double cpu_s() const { return before.cpu_s + last_try.cpu_s; }
  // Nothing: there is no promise.
  std::optional<bool> kept() const {
    if (!promise_s) return std::nullopt;
    return state == "succeeded" && finished_s - submitted_s <= *promise_s;
  }
};

struct SharingRun {
  std::string policy;
  std::string enforcement;  // how shares are kept to on this machine
  std::vector<SharingJob> jobs;
  double units = 0;
  double begin_s = 0, end_s = 0;
};

// As the script's model cards say; every second job has a promise.
Result<std::vector<SharingPlan>> sharing_plans(const TrainingScript& script, double scale,
                                               double gap_s);

using SharingView = std::function<void(double since_s, const std::vector<SharingJob>& jobs)>;
// `promise`: so many times what is predicted of a job, its start included. Promises that cannot be
// made are noted, and their jobs run without one.
Result<SharingRun> run_sharing(DemoCluster& cluster, const std::string& policy,
                               const TrainingScript& script, const std::vector<SharingPlan>& plans,
                               const std::map<std::string, double>& promises_s, double units,
                               const SharingView& show);

}  // namespace tierpilot::demo
