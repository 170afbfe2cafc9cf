// Measures for a process that has threads by now and must not fork any more: a child that was
// forked before and sleeps until it is asked.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/probe/active/measure.h"

namespace tierpilot {

// Owned by one thread, on whose end the child dies.
class ProbeServer {
 public:
  struct Answer {
    Result<std::vector<TierMeasurement>> tiers;  // as of measure_tiers
    double cpu_s = 0;                            // CPU time it took, of all its processes
  };

  // Forks: call it before the process has threads. The child keeps the caller's CPUs and none of
  // its descriptors.
  static Result<std::unique_ptr<ProbeServer>> start();
  // Ends the child, also in the middle of measuring.
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  // Readable when take() has something to say.
  int fd() const { return socket_.get(); }
  bool busy() const { return busy_; }
  // kConflict while an answer is outstanding; kIo when the child is gone.
  Status ask(const std::vector<TierSpec>& tiers, const ProbeOptions& options);
  // Does not wait; nothing while the answer is not there. When the child has ended that is the
  // answer (kIo), and every later one.
  std::optional<Answer> take();

 private:
  ProbeServer(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}
  pid_t pid_;
  UniqueFd socket_;
  std::string received_;
  bool busy_ = false;
  bool gone_ = false;
};

}  // namespace tierpilot
