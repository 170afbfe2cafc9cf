// A TCP port that nobody else gets while it is held.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot::agent {

class PortHold {
 public:
  // Free on all addresses of this machine.
  static Result<PortHold> any();
  uint16_t port() const { return port_; }

 private:
  PortHold(UniqueFd socket, uint16_t port) : socket_(std::move(socket)), port_(port) {}

  UniqueFd socket_;
  uint16_t port_;
};

}  // namespace tierpilot::agent
