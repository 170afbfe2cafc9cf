// What one connection may cost us, whoever is at its other end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tierpilot {

struct RpcLimits {
  // Largest message in either direction; a 1 MiB Data payload fits with room to spare.
  size_t max_frame_bytes = size_t{4} << 20;
  // Words that may be visited in a message, or eight times its own words if that is more: so a
  // large payload may be read a few times, and a small message can never become vast.
  uint64_t traversal_limit_words = 64 * 1024;
  // Pointers below pointers. Four levels are taken by the RPC protocol itself.
  int nesting_limit = 16;
  size_t max_connections = 256;
  // Of them, one peer's by its name.
  size_t max_connections_of_peer = SIZE_MAX;
  // Where so many are open, the one that has been idle longest makes room for the next, if for as
  // long as this; 0: none does. Idle: all calls are answered, in both directions.
  int64_t spare_idle_ms = 0;

  // That wait for their TLS handshake, beside those that are open. Where so many do, the one that
  // has waited longest makes room for the next, if for as long as this; else the next waits.
  size_t max_handshakes = 128;
  int64_t spare_handshake_ms = 3'000;

  // From accept (or dial) to the first complete frame, TLS handshake included.
  int64_t handshake_timeout_ms = 10'000;
  // From the first byte of a later frame to its last.
  int64_t frame_timeout_ms = 30'000;

  // Of all frames of a server that have begun and are larger than a connection's buffer (32 KiB):
  // more of them wait, without being read. Half of it at most is one peer's, by its name.
  size_t max_begun_bytes = size_t{128} << 20;
  // While others wait for that memory: from one 64 KiB of a frame that has it to the next.
  int64_t frame_stall_ms = 3'000;

  // What a peer does not let go of on one connection, and by its name on all of a server: questions
  // whose answers it keeps, and capabilities that answers gave it.
  size_t max_open_questions = 65'536;
  size_t max_open_questions_of_peer = 262'144;
  // Calls of a peer that have not been answered yet, by the size of their parameters.
  size_t max_unanswered_bytes = size_t{16} << 20;
  // Bytes that wait for the peer to read them: a server first stops reading its requests ...
  size_t pause_reading_bytes = size_t{4} << 20;
  // ... and either side closes the connection when they grow on, or when so many hardly move: less
  // than a sixteenth of them, or 1 MiB, in this time.
  size_t drop_peer_bytes = size_t{64} << 20;
  size_t stall_bytes = size_t{4} << 20;
  int64_t write_stall_timeout_ms = 30'000;
};

}  // namespace tierpilot
