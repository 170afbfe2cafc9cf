#include "tests/bench/rpc/ping_pong.h"

#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace tierpilot::bench {

Histogram socket_ping_pong_ns(int round_trips) {
  int ends[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  std::thread partner([&] {
    char byte;
    while (::read(there.get(), &byte, 1) == 1) KJ_SYSCALL(::write(there.get(), &byte, 1));
  });
  Histogram latency_ns;
  char byte = 'x';
  for (int i = 0; i < round_trips; ++i) {
    const int64_t start_ns = system_clock().boot_ns();
    KJ_SYSCALL(::write(here.get(), &byte, 1));
    KJ_SYSCALL(::read(here.get(), &byte, 1));
    latency_ns.add(static_cast<uint64_t>(system_clock().boot_ns() - start_ns));
  }
  here.reset();
  partner.join();
  return latency_ns;
}

}  // namespace tierpilot::bench
