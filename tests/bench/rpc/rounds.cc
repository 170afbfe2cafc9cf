#include "tests/bench/rpc/rounds.h"

#include <kj/debug.h>
#include <time.h>

#include <functional>

#include "base/clock.h"
#include "base/histogram.h"

namespace tierpilot::bench {
namespace {

int64_t process_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// `call` again and again, `count` times in all, `window` of them at a time.
void run_windowed(EventLoop& loop, int count, int window,
                  const std::function<kj::Promise<void>()>& call) {
  int started = 0;
  std::function<kj::Promise<void>()> next = [&]() -> kj::Promise<void> {
    if (started++ >= count) return kj::READY_NOW;
    return call().then([&] { return next(); });
  };
  auto lanes = kj::heapArrayBuilder<kj::Promise<void>>(static_cast<size_t>(window));
  for (int i = 0; i < window; ++i) lanes.add(next());
  kj::joinPromises(lanes.finish()).wait(loop.wait_scope());
}

struct Cost {
  double wall_s;
  double cpu_us_each;
};

Cost cost_of(int count, const std::function<void()>& work) {
  const int64_t start_ns = system_clock().boot_ns();
  const int64_t start_cpu_ns = process_cpu_ns();
  work();
  return {static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9,
          static_cast<double>(process_cpu_ns() - start_cpu_ns) / 1e3 / count};
}

Histogram round_trips_ns(EventLoop& loop, int count,
                         const std::function<kj::Promise<void>()>& call) {
  Histogram latency_ns;
  for (int i = 0; i < count; ++i) {
    const int64_t start_ns = system_clock().boot_ns();
    call().wait(loop.wait_scope());
    latency_ns.add(static_cast<uint64_t>(system_clock().boot_ns() - start_ns));
  }
  return latency_ns;
}

}  // namespace

Round measure_round(EventLoop& loop, test::Echo::Client client, const Sizes& sizes) {
  const auto echo = [&] {
    auto request = client.echoRequest();
    request.setText("x");
    return request.send().ignoreResult();
  };
  const auto get_chunk = [&] {
    auto request = client.makeRequest();
    request.setSize(kChunkBytes);
    return request.send().then([](capnp::Response<test::Echo::MakeResults> response) {
      KJ_REQUIRE(response.getData().size() == kChunkBytes);
    });
  };
  const Histogram latency_ns = round_trips_ns(loop, sizes.round_trips, echo);
  const Cost calls = cost_of(sizes.pipelined_calls, [&] {
    run_windowed(loop, sizes.pipelined_calls, kCallsOnTheirWay, echo);
  });
  const Cost chunks = cost_of(
      sizes.chunks, [&] { run_windowed(loop, sizes.chunks, kChunksOnTheirWay, get_chunk); });
  return {.p50_us = latency_ns.quantile(0.50) / 1e3,
          .p99_us = latency_ns.quantile(0.99) / 1e3,
          .calls_per_s = sizes.pipelined_calls / calls.wall_s,
          .cpu_us_per_call = calls.cpu_us_each,
          .chunk_gb_per_s = sizes.chunks * double{kChunkBytes} / 1e9 / chunks.wall_s,
          .cpu_us_per_chunk = chunks.cpu_us_each};
}

}  // namespace tierpilot::bench
