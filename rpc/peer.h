// Who is at the other end of a connection, as the kernel or the certificate says.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace tierpilot {

struct Peer {
  std::string transport;     // "unix" or "tls"
  std::optional<uid_t> uid;  // Unix: when it connected or listened (SO_PEERCRED)
  std::optional<pid_t> pid;
  std::string name;     // the certificate's subject CN, or "uid N"
  std::string address;  // TLS: "10.0.0.7:40312"; empty for Unix
};

}  // namespace tierpilot
