// The proof that a task never runs twice at once: every run holds a lock that only its death, or
// its end, gives up, and writes what it does to one journal.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/system/client.h"

namespace tierpilot::test {

class Journal {
 public:
  explicit Journal(const std::filesystem::path& folder);

  // A task that runs the shell commands `work` under its lock. With `key` the lock and the journal
  // go by it; without, by the task's id.
  TaskPlan task(const std::string& work, const std::string& key = "") const;
  // A gang whose ranks run `work`; the key of each is TASK.RANK. No rank may meet itself, nor any
  // of another attempt.
  TaskPlan gang(const std::string& work, uint32_t ranks) const;

  struct Run {
    std::string node;
    int attempt = 0;
    pid_t pid = 0;
    bool ended = false;
  };
  struct Record {
    std::map<std::string, std::vector<Run>> runs;  // by key, in the order of their starts
    std::vector<std::string> overlaps;             // lines of runs that found the lock held
  };
  Record read() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tierpilot::test
