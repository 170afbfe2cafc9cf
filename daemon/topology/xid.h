// Xid errors, as NVIDIA's driver reports them of its devices, and whom they speak against.
//
// After NVIDIA, "XID Errors", its catalog: those whose first remedy is to look at the application
// are the application's own; those whose remedy is a reset, a restart of the machine or a check of
// the hardware, the device's. What the catalog leaves open speaks against nobody.
#pragma once

#include <cstdint>
#include <string_view>

namespace tierpilot {

enum class XidCause { kApplication, kDevice, kUnclear };

struct Xid {
  XidCause cause = XidCause::kUnclear;
  std::string_view meaning = "not in the list of known ones";  // a string literal
};

Xid find_xid(uint64_t number);

}  // namespace tierpilot
