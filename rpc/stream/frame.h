// The wire format: every Cap'n Proto message travels in a frame that says its size first.
//
//   bytes 0-3  magic "TPF1"
//   bytes 4-7  payload size in bytes, little endian, a multiple of 8
//   payload    one message in Cap'n Proto's standard stream format, filling it exactly
//
// The frame exists because the reader in Cap'n Proto 0.9.2 writes out of bounds on a segment count
// of FFFFFFFF: here a size is refused before anything is allocated and a segment table before it is
// used.
#pragma once

#include <capnp/common.h>
#include <capnp/message.h>
#include <kj/array.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "rpc/limits.h"

namespace tierpilot {

constexpr size_t kFrameHeaderBytes = 8;

using Segments = kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>;

// The payload's size in words. Refuses foreign magic, empty and odd sizes, and sizes over the
// limit.
Result<size_t> parse_frame_header(const kj::byte* header, const RpcLimits& limits);

// A frame that was read whole and checked: the segment table fits, and every pointer in it leads to
// something inside the message within the limits of nesting and traversal.
Result<kj::Own<capnp::MessageReader>> open_frame(kj::Array<capnp::word> payload,
                                                 const RpcLimits& limits);

// Frame header and segment table, to be sent before the segments.
std::vector<uint32_t> frame_prefix(Segments segments);

}  // namespace tierpilot
