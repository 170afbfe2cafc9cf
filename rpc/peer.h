// Who is at the other end of a connection, as the kernel or the certificate says.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/address.h"

namespace tierpilot {

// Before the number of an account of this machine; no certificate may begin so.
inline constexpr std::string_view kUidPrefix = "uid ";

struct Peer {
  std::string transport;     // "unix" or "tls"
  std::optional<uid_t> uid;  // Unix: when it connected or listened (SO_PEERCRED)
  std::optional<pid_t> pid;
  std::string name;                // the certificate's subject CN, or kUidPrefix and the number
  std::string address;             // TLS: "10.0.0.7:40312"; empty for Unix
  std::vector<std::string> hosts;  // TLS: the names that the certificate is made out to
};

// Whether `address` is on the host of the peer: for tls:, the connection came from there or the
// peer's certificate is made out to it by name; for unix:, the peer is of this process's own user.
bool is_at(const Peer& peer, const Address& address);

}  // namespace tierpilot
