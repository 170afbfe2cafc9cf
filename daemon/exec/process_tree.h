// All processes below one, and what they use.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/process/look_pace.h"
#include "base/result.h"

namespace tierpilot {

// Without `root` itself. What is forked meanwhile may be missing, and so is, of a task that forks
// or starts threads without end, what comes after many thousands.
std::vector<pid_t> descendants(pid_t root);
// Zombies among them; from every process's stat file, for kernels without CONFIG_PROC_CHILDREN.
std::optional<std::vector<pid_t>> children_from_stat(pid_t process);
// 0 when it is gone.
pid_t parent_of(pid_t process);
// All that there are; empty: /proc cannot be read.
std::vector<pid_t> processes();
// It is stopped, or gone.
bool stands_still(pid_t process);
// It is gone, or nobody has waited for it yet.
bool has_ended(pid_t process);
// Of all its threads, the ended ones too; nothing when it is gone.
std::optional<int64_t> cpu_time_ns(pid_t process);
// That its threads were ready to run and waited for a CPU, those that it has now; 0 when it is
// gone.
int64_t run_delay_ns(pid_t process);
// Of those below it that have ended and were waited for; 0 when it is gone.
int64_t ended_children_ns(pid_t process);
// Of every thread that it has now; those it starts later take after the one that starts them.
Status set_affinity(pid_t process, const std::vector<int>& cpus);

// CPU time of a process tree, whose root collects what others leave behind: also of those that came
// and went between two looks. A look too soon after one that took long is none.
class CpuMeter {
 public:
  explicit CpuMeter(pid_t root = 0) : root_(root) {}

  void look();
  // At those of the last look(), and not at what ended ones left: cheaper.
  void glance();
  int64_t used_ns() const { return used_ns_; }  // never falls

 private:
  void sum_up();

  pid_t root_;
  LookPace looks_, glances_;
  std::vector<pid_t> living_;
  int64_t ended_ns_ = 0;
  int64_t used_ns_ = 0;
};

}  // namespace tierpilot
