// A share of a unit as users write it, on a command line or in a file of tasks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/task_spec.h"

namespace tierpilot::tierctl {

struct ShareWords {
  std::string share;  // "auto", "400", "400:2GiB", "auto:2GiB"; empty: none is wanted
  std::string
      job_class;  // "latency-sensitive", "best-effort"; empty: by whether there is a promise
  int64_t promise_ms = 0;  // 0: none
  bool promise_on_trial = false;
  std::string card_file;
  std::string card;  // its text, if it is not in a file
};

// As parse_duration_ms; one that is too short for anything is none.
Result<int64_t> parse_promise_ms(std::string_view text);
// What is wrong with a share that is written down; empty: nothing.
std::string share_fault(const std::string& words);

// Moves the estimate from the gang's, which it is not then. kInvalid names what is wrong.
Status apply(const ShareWords& words, TaskSpec& task);

// For one that has no other: tasks that run with one name are taken for runs of one program.
std::string name_by_command(const std::vector<std::string>& argv);

}  // namespace tierpilot::tierctl
