// What one peer has open at a server, on all its connections.
#pragma once

#include <cstddef>

#include "rpc/stream/frame_memory.h"
#include "rpc/stream/open_questions.h"

namespace tierpilot {

struct PeerUse {
  explicit PeerUse(FrameMemory& memory) : memory(memory) {}

  size_t connections = 0;
  PeerQuestions questions;
  FrameMemory& memory;  // the server's, which outlives its connections
  FrameMemory::OfPeer frames;
};

}  // namespace tierpilot
