#include "rpc/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

#include "base/unique_fd.h"

#ifdef __SANITIZE_THREAD__
// kj::Executor hands results over inside libkj-async, which is not instrumented.
extern "C" const char* __tsan_default_suppressions() {
  return "race:kj::_::convertToReturn";
}
#endif

namespace tierpilot {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends;
    KJ_SYSCALL(::pipe2(ends.data(), O_CLOEXEC));
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  void put() { KJ_SYSCALL(::write(write.get(), "x", 1)); }
  void take() {
    char byte;
    KJ_SYSCALL(::read(read.get(), &byte, 1));
  }
  UniqueFd read, write;
};

TEST(EventLoop, StopBeforeRunEndsItAtOnce) {
  EventLoop loop;
  loop.stop();
  loop.run();
  loop.post([&] { loop.stop(); });
  loop.run();
}

TEST(EventLoop, PostedWorkRunsInOrderFromOtherThreads) {
  EventLoop loop;
  std::vector<int> order;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&order, i] { order.push_back(i); });
    loop.stop();
  });
  loop.run();
  other.join();
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(EventLoop, CrossThreadExecutorIsServicedWhileTheLoopSleeps) {
  std::promise<kj::Own<const kj::Executor>> executor;
  std::promise<EventLoop*> started;
  std::thread thread([&] {
    EventLoop loop;
    executor.set_value(kj::getCurrentThreadExecutor().addRef());
    started.set_value(&loop);
    loop.run();
  });
  const auto target = executor.get_future().get();
  EventLoop* loop = started.get_future().get();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(target->executeSync([&] { return std::this_thread::get_id(); }), thread.get_id());
  // A promise of the other loop is waited for there and handed over.
  EXPECT_EQ(target->executeSync([&] { return loop->after_ms(5).then([] { return 7; }); }), 7);
  loop->stop();
  thread.join();
}

TEST(EventLoop, ExecutorIsServicedWhileTheLoopIsBusy) {
  EventLoop loop;
  const auto executor = kj::getCurrentThreadExecutor().addRef();
  bool done = false;
  std::thread other([&] { executor->executeSync([&] { done = true; }); });
  std::function<kj::Promise<void>()> spin = [&]() -> kj::Promise<void> {
    if (done) return kj::READY_NOW;
    return kj::evalLater([&] { return spin(); });
  };
  spin().wait(loop.wait_scope());
  other.join();
}

TEST(EventLoop, TimersFireInOrderAndNotEarly) {
  EventLoop loop;
  std::vector<int> order;
  auto start = std::chrono::steady_clock::now();
  auto slow = loop.after_ms(40).then([&] { order.push_back(40); });
  auto fast = loop.after_ms(5).then([&] { order.push_back(5); }).eagerlyEvaluate(nullptr);
  {
    auto dropped = loop.after_ms(1).then([&] { order.push_back(1); });
  }
  slow.wait(loop.wait_scope());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
  EXPECT_EQ(order, (std::vector<int>{5, 40}));
}

TEST(EventLoop, BusyPromisesDoNotStarveTimers) {
  EventLoop loop;
  bool fired = false;
  auto timer = loop.after_ms(5).then([&] { fired = true; }).eagerlyEvaluate(nullptr);
  std::function<kj::Promise<void>()> spin = [&]() -> kj::Promise<void> {
    if (fired) return kj::READY_NOW;
    return kj::evalLater([&] { return spin(); });
  };
  spin().wait(loop.wait_scope());
  EXPECT_TRUE(fired);
}

TEST(EventLoop, ReadableDescriptorIsReportedUntilItIsDrained) {
  EventLoop loop;
  Pipe pipe;
  int left = 3, calls = 0;
  for (int i = 0; i < left; ++i) pipe.put();
  // Takes one byte a call: only level-triggered watching calls again for the others.
  loop.watch_readable(pipe.read.get(), [&] {
    ++calls;
    pipe.take();
    if (--left == 0) loop.stop();
  });
  loop.run();
  EXPECT_EQ(calls, 3);
  loop.unwatch(pipe.read.get());
  pipe.put();
  loop.after_ms(20).wait(loop.wait_scope());
  EXPECT_EQ(calls, 3);
  loop.watch_readable(pipe.read.get(), [&] {
    loop.unwatch(pipe.read.get());
    loop.stop();
  });
  loop.run();
}

TEST(EventLoop, WatchedDescriptorStaysTheCallers) {
  Pipe pipe;
  {
    EventLoop loop;
    loop.watch_readable(pipe.read.get(), [] {});
  }
  EXPECT_GE(::fcntl(pipe.read.get(), F_GETFD), 0);
}

TEST(EventLoop, SignalsArriveOnTheLoopAndMayStopIt) {
  EventLoop loop;
  std::vector<int> seen;
  loop.on_signal({SIGUSR1, SIGUSR2}, [&](int signal) {
    seen.push_back(signal);
    if (seen.size() == 2)
      loop.stop();
    else
      ::raise(SIGUSR2);
  });
  ::raise(SIGUSR1);
  loop.run();
  EXPECT_EQ(seen, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

TEST(EventLoop, FailuresOfCallbacksAndDetachedPromisesDoNotEndIt) {
  EventLoop loop;
  Pipe pipe;
  pipe.put();
  loop.post([] { throw std::runtime_error("posted"); });
  loop.detach(kj::evalLater([] { KJ_FAIL_REQUIRE("detached"); }), "a detached promise");
  loop.watch_readable(pipe.read.get(), [&] {
    pipe.take();
    KJ_FAIL_REQUIRE("watch");
  });
  loop.detach(loop.after_ms(20).then([&] { loop.stop(); }), "timer");
  loop.run();
}

TEST(EventLoop, ForgetsWorkThatWasNotRun) {
  auto token = std::make_shared<int>(1);
  {
    EventLoop loop;
    loop.post([token] {});
    loop.detach(loop.after_ms(60'000).then([token] {}), "never");
    EXPECT_EQ(token.use_count(), 3);
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace tierpilot
