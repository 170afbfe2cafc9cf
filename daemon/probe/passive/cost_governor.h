// How long programs may stay attached that run in every call of something, so that they cost no
// more than a share of one CPU on average. Decides only; see governor_thread.h for who carries it
// out.
//
// A token bucket of CPU time. It fills with the share of the time that passes; calls are paid from
// it, and so are attaching and detaching, which the kernel makes dear. When it is empty the
// programs are detached, until it holds enough for a window that spends as much on calls as it does
// on its own beginning and end. Calls that cost less than the share fill it: the programs stay
// attached.
#pragma once

#include <cstdint>

namespace tierpilot {

class CostGovernor {
 public:
  struct Options {
    double cpu_share = 0.005;  // of one CPU, above 0
    int64_t call_ns = 1000;    // CPU time that the programs add to a call
  };
  enum class Step { kStay, kAttach, kDetach };
  struct Decision {
    Step step;
    int64_t wait_ns;  // kStay: until the next decision
  };

  // The programs are attached. Times are of one clock, which never goes back.
  CostGovernor(const Options& options, int64_t now_ns);

  // `calls` is how many they have run in so far. Until toggled() says so, no step is taken.
  Decision decide(int64_t now_ns, uint64_t calls);
  // A step was taken, is done now, and cost so much CPU time.
  void toggled(bool attached, int64_t now_ns, int64_t cpu_ns);
  // Attaching failed: it is decided anew when the bucket is full again.
  void attach_failed() { credit_ns_ = 0; }

 private:
  void settle(int64_t now_ns, uint64_t calls);
  double reserve_ns() const;

  Options options_;
  bool attached_ = true;
  int64_t attach_ns_ = 0, detach_ns_ = 0;  // as they were last
  double credit_ns_;
  int64_t now_ns_;
  uint64_t calls_ = 0;
  double spending_ = 0;  // of the time, when the programs were looked at last
};

}  // namespace tierpilot
