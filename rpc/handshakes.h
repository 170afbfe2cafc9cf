// Connections of a server that wait for their TLS handshake: nobody knows yet whose they are, so
// they have places of their own.
#pragma once

#include <kj/async.h>

#include <cstdint>
#include <map>

#include "rpc/transport.h"

namespace tierpilot {

class Handshakes {
 public:
  Handshakes(EventLoop& loop, Tls tls, const RpcLimits& limits)
      : loop_(loop), tls_(std::move(tls)), limits_(limits) {}

  // Whether there is a place, or one that has waited for too long has to leave its own.
  bool may_begin() const;
  // See welcome(). Only if it may.
  kj::Promise<Channel> begin(UniqueFd fd);

 private:
  struct Handshake {
    int64_t since_ns;
    kj::Canceler canceler;
  };

  bool is_late(const Handshake& handshake) const;
  void end_longest();

  EventLoop& loop_;
  const Tls tls_;
  const RpcLimits limits_;
  uint64_t next_id_ = 0;
  std::map<uint64_t, Handshake> waiting_;  // in the order in which they began
};

}  // namespace tierpilot
