// Which of a job's ranks this process is, as Tierpilot and torchrun say it in the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace tierpilot::trainer {

struct Place {
  uint32_t rank = 0;
  uint32_t world = 1;
  // Where rank 0 listens; empty and 0 where there is one rank only.
  std::string master_host{};
  uint16_t master_port = 0;
  std::string network_interface{};  // what GLOO_SOCKET_IFNAME says; empty: by the address
  bool alone() const { return world == 1; }
};

// getenv(), or what a test says.
using Variables = std::function<const char*(const char* name)>;

// Without WORLD_SIZE it is alone. The error names the variable that is wrong.
Result<Place> place_of(const Variables& variables);

}  // namespace tierpilot::trainer
