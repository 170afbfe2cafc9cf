// Refused calls in the audit log: of each user the first of a second as it comes, of more their
// number. Who may do nothing shall not fill a disk. Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tierpilot {

class RefusalAudit {
 public:
  // `who`: such as "user 'bob' over tls"; `what` he was not allowed to, of which the beginning is
  // written.
  void refused(const std::string& who, const std::string& what);
  // Several times a second.
  void tick(int64_t now_ns);
  // At the end.
  void flush();

 private:
  struct Unwritten {
    uint64_t refusals = 0;
    std::string last;
  };

  std::map<std::string, Unwritten> by_whom_;  // of this second
  int64_t next_ns_ = 0;
};

}  // namespace tierpilot
