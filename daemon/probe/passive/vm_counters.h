// What the kernel counts for the whole machine anyway.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/sysroot.h"

namespace tierpilot {

// /proc/vmstat by name: events since boot and current amounts. Lines that are none are left out.
Result<std::map<std::string, uint64_t>> read_vm_counters(const Sysroot& sysroot = Sysroot());

// Events since it was made, by their names in /proc/vmstat.
class VmEvents {
 public:
  // kUnavailable when the file or one of the events is not there.
  static Result<VmEvents> start(const std::vector<std::string>& names, Sysroot sysroot = Sysroot());
  // Keeps the previous values where the file cannot be read.
  const std::map<std::string, uint64_t, std::less<>>& read();

 private:
  explicit VmEvents(Sysroot sysroot) : sysroot_(std::move(sysroot)) {}

  Sysroot sysroot_;
  std::map<std::string, uint64_t, std::less<>> before_, since_;
};

}  // namespace tierpilot
