// Listening sockets, and the Unix half of connecting.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "rpc/address.h"

namespace tierpilot {

struct ListeningSocket {
  UniqueFd fd;      // non-blocking, close-on-exec
  Address address;  // with the port that was given, when 0 was asked
  ino_t inode = 0;  // of a Unix socket's file
};

// A Unix path is made with mode 0660. A socket file that is there already is replaced if nobody
// answers it (its owner was killed), and is kConflict if somebody does.
Result<ListeningSocket> listen_on(const Address& address);

// Does not wait: kExhausted when the listener's backlog is full.
Result<UniqueFd> connect_unix(const Address& address);

// Removes the file of a Unix socket, unless another process has put its own there since.
void remove_socket_file(const ListeningSocket& socket);

}  // namespace tierpilot
