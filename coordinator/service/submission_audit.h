// Accepted submits in the audit log: of each user a line a second, however many there are.
// Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "coordinator/model.h"

namespace tierpilot {

class SubmissionAudit {
 public:
  // `who`: such as "user 'bob' over tls". The receipt is on disk.
  void accepted(const std::string& who, const SubmitReceipt& receipt);
  // Several times a second.
  void tick(int64_t now_ns);
  // At the end.
  void flush();

 private:
  struct Accepted {
    uint64_t submissions = 0;
    uint64_t tasks = 0;
    uint64_t first_task = UINT64_MAX;
    uint64_t last_task = 0;
  };

  std::map<std::string, Accepted> by_whom_;
  int64_t next_ns_ = 0;
};

}  // namespace tierpilot
