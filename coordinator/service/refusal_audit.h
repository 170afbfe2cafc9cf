// Refused calls in the audit log: of each user the first ten of a second as they come, of more
// their number. Who may do nothing shall not fill a disk. Event loop thread only.
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
  struct Refused {
    int written = 0;
    uint64_t more = 0;
    std::string last;  // of those
  };

  std::map<std::string, Refused> by_whom_;  // of this second
  int64_t next_ns_ = 0;
};

}  // namespace tierpilot
