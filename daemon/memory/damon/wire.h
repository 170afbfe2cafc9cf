// What clients and the keeper of DAMON say to each other over a Unix socket of type SOCK_SEQPACKET:
// a packet each, in the machine's byte order, as both are on one machine. One connection watches at
// most one process, and for as long as it is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/memory/damon/access.h"

namespace tierpilot {

inline constexpr char kKeeperSocket[] = "/run/tierpilot-damon/keeper.sock";

struct KeeperRequest {
  enum class Kind : uint32_t {
    kCheck = 1,  // may DAMON be had?
    kWatch,      // of pid and attrs
    kRead,       // what was seen; answered after the end of an aggregation
    kIntervals,  // of attrs: sample_us and aggregation_us
  };
  Kind kind = Kind::kCheck;
  pid_t pid = 0;
  DamonAttrs attrs{};

  friend bool operator==(const KeeperRequest&, const KeeperRequest&) = default;
};

inline constexpr size_t kKeeperRequestBytes = 56;
inline constexpr size_t kMaxReadingRegions = 2'048;
inline constexpr size_t kMaxKeeperReplyBytes = 64 << 10;

using KeeperBytes = std::vector<std::byte>;

KeeperBytes encode(const KeeperRequest& request);
// kInvalid for anything but what encode() makes of a request with a pid above 0 and attributes that
// check() accepts.
Result<KeeperRequest> decode_request(std::span<const std::byte> bytes);

// A reply to anything but a read has no regions. One with more than kMaxReadingRegions becomes a
// kExhausted, and long messages are cut.
KeeperBytes encode(const Result<DamonReading>& reply);
Result<DamonReading> decode_reply(std::span<const std::byte> bytes);

}  // namespace tierpilot
