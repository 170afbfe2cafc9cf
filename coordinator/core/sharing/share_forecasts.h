// What a task with a share of a unit will use and how long it will run: by its model card, by tasks
// of its name that have run, or by what its user says. In memory only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "coordinator/core/sharing/share_record.h"
#include "model/task_spec.h"

namespace tierpilot {

class ShareForecasts {
 public:
  static constexpr size_t kMostNames = 10'000;

  ShareForecast of(const TaskSpec& spec) const;
  // A task has run to its end.
  void ended(const std::string& name, uint32_t milli, uint64_t memory_bytes, double run_s);

 private:
  struct Past {
    double milli = 0;  // the most that was used
    uint64_t memory_bytes = 0;
    double run_s = 0, longest_s = 0;  // if nothing had held it back
    uint32_t runs = 0;
  };
  std::map<std::string, Past> past_;
};

}  // namespace tierpilot
