// What the clients of an MPS server used of its GPU, where the driver tells of the server only: an
// estimate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tierpilot::agent {

struct ServerClient {
  uint32_t milli = 0;       // its share
  uint32_t most_milli = 0;  // of the multiprocessors, that it may use at all
};

// By client: the server's time by their shares, and of each no more than its multiprocessors could
// do in that time.
inline std::vector<int64_t> server_use(int64_t busy_ns, const std::vector<ServerClient>& clients) {
  double shares = 0;
  for (const auto& client : clients) shares += client.milli;
  std::vector<int64_t> use;
  for (const auto& client : clients) {
    const double part = shares > 0 ? client.milli / shares : 0;
    use.push_back(static_cast<int64_t>(static_cast<double>(busy_ns) *
                                       std::min(part, client.most_milli / 1000.0)));
  }
  return use;
}

}  // namespace tierpilot::agent
