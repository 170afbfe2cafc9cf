// Where an RPC server listens: "unix:/run/tierpilot/coordinator.sock" or "tls:host:port".
// Plain TCP does not exist: between machines there is only mutual TLS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

struct Address {
  enum class Kind { kUnix, kTls };

  Kind kind = Kind::kUnix;
  std::string path;   // kUnix: absolute, at most 107 bytes (the kernel's sun_path)
  std::string host;   // kTls: name or literal address, an IPv6 one without its brackets
  uint16_t port = 0;  // kTls: 0 asks a listener for any free port

  static Result<Address> parse(std::string_view text);
  std::string to_string() const;

  bool operator==(const Address&) const = default;
};

}  // namespace tierpilot
