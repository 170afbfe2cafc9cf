// One of the programs that the demonstration runs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot::demo {

class DaemonProcess {
 public:
  // Standard output and error go to `log`. The process is in a session of its own (Ctrl-C does not
  // reach it), and gets SIGTERM when the thread that started it dies.
  static Result<DaemonProcess> start(std::string name, const std::vector<std::string>& argv,
                                     const std::filesystem::path& log);

  const std::string& name() const { return name_; }
  // An error with its exit status and the end of its log, once it has died.
  Status check();
  // `error` with the end of the log below it.
  Error with_log(Error error) const;

 private:
  DaemonProcess(std::string name, pid_t pid, std::filesystem::path log)
      : name_(std::move(name)), pid_(pid), log_(std::move(log)) {}
  std::string name_;
  pid_t pid_;
  std::filesystem::path log_;
};

// At most `lines` lines from the end of a file, of its last 8 KiB.
std::string last_lines(const std::filesystem::path& file, size_t lines);

}  // namespace tierpilot::demo
