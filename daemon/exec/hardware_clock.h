// The clock of a virtual machine's hardware (/sys/class/rtc), which goes on while it is stopped.
#pragma once

#include <string>

#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/exec/pause_detector.h"

namespace tierpilot {

class HardwareClock {
 public:
  // kUnavailable with the reason: no virtual machine, where nobody stops it, or no such clock.
  static Result<HardwareClock> find(const Sysroot& sysroot);

  Result<ClockReading> read() const;

 private:
  HardwareClock(Sysroot sysroot, std::string path)
      : sysroot_(std::move(sysroot)), path_(std::move(path)) {}

  Sysroot sysroot_;
  std::string path_;
};

}  // namespace tierpilot
