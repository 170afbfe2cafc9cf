#include "daemon/topology/xid.h"

#include <algorithm>
#include <iterator>

namespace tierpilot {
namespace {

struct Row {
  uint64_t number;
  Xid xid;
};

// By number.
constexpr Row kRows[] = {
    {13, {XidCause::kApplication, "graphics engine exception"}},
    {31, {XidCause::kApplication, "memory page fault"}},
    {32, {XidCause::kUnclear, "invalid or corrupted push buffer stream"}},
    {38, {XidCause::kUnclear, "driver firmware error"}},
    {43, {XidCause::kApplication, "the device stopped processing"}},
    {45, {XidCause::kApplication, "preemptive cleanup after an earlier error"}},
    {48, {XidCause::kDevice, "double bit ECC error"}},
    {61, {XidCause::kDevice, "internal micro-controller breakpoint"}},
    {62, {XidCause::kDevice, "internal micro-controller halt"}},
    {63, {XidCause::kDevice, "a memory page was retired or a row remapped"}},
    {64, {XidCause::kDevice, "a memory page could not be retired or a row not remapped"}},
    {68, {XidCause::kApplication, "video decoder exception"}},
    {69, {XidCause::kApplication, "graphics engine class error"}},
    {74, {XidCause::kDevice, "NVLink error"}},
    {79, {XidCause::kDevice, "the device has fallen off the bus"}},
    {92, {XidCause::kDevice, "high rate of single bit ECC errors"}},
    {94, {XidCause::kDevice, "contained memory error"}},
    {95, {XidCause::kDevice, "uncontained memory error"}},
    {109, {XidCause::kUnclear, "context switch timeout"}},
    {119, {XidCause::kDevice, "GSP timeout"}},
    {120, {XidCause::kDevice, "GSP error"}},
    {140, {XidCause::kDevice, "unrecovered ECC error"}},
};

}  // namespace

Xid find_xid(uint64_t number) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const Row& each) { return each.number == number; });
  return row == std::end(kRows) ? Xid{} : row->xid;
}

}  // namespace tierpilot
