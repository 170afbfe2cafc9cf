// One event loop for everything: Boost.Asio waits for descriptors, timers and signals, and drives
// KJ, which runs Cap'n Proto. One per thread that speaks RPC; made, run and destroyed on that
// thread.
//
// Callbacks run on the loop's thread and may start promises but must not wait() for one. What they
// throw is logged and does not end the loop.
#pragma once

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace tierpilot {

class EventLoop {
 public:
  EventLoop();
  // Streams, servers and connections of this loop must be gone by now; detached promises are
  // dropped here, and work that was posted but not run is forgotten.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  boost::asio::io_context& io();
  kj::WaitScope& wait_scope();

  // Until stop(), which may also come first; what was posted before stop() has run by then. May be
  // called again.
  void run();
  // From any thread, and from a handler of on_signal (not from a raw signal handler).
  void stop();
  // From any thread; in order.
  void post(std::function<void()> work);

  kj::Promise<void> after_ms(int64_t delay_ms);
  // Runs `promise` to its end; a failure is logged as "`what`: cause".
  void detach(kj::Promise<void> promise, std::string what);

  // Calls `ready` whenever `fd` is readable (level-triggered), until unwatch(fd), which must come
  // before the descriptor is closed. Watching again replaces the callback. Makes `fd` non-blocking.
  void watch_readable(int fd, std::function<void()> ready);
  void unwatch(int fd);

  void on_signal(std::vector<int> signals, std::function<void(int)> handler);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierpilot
