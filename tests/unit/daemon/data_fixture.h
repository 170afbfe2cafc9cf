// A daemon's data plane, and another one that reads from it, on one event loop.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/agent/data/data_server.h"
#include "daemon/agent/data/remote_fetcher.h"
#include "tests/unit/daemon/run_until.h"

namespace tierpilot::agent {

class DataFixture : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/dev/shm/tierpilot-data-XXXXXX";  // the fast tier must be on a tmpfs
    if (!::mkdtemp(name)) GTEST_SKIP() << "no directory can be made in /dev/shm";
    root = name;
    PoolOptions options;
    options.fast_dir = root / "fast";
    options.fast_budget_bytes = 16 << 20;
    options.slow_dir = root / "slow";
    options.slow_budget_bytes = 64 << 20;
    auto opened = Pool::open(
        options, nullptr, [this](auto work) { loop.post(std::move(work)); },
        [](const ReplicaChange&) {});
    ASSERT_TRUE(opened) << opened.error().message;
    pool = std::move(*opened);
    serve();
    fetcher = std::make_unique<RemoteFetcher>(loop, nullptr, 5000);
  }
  void TearDown() override {
    fetcher.reset();
    server.reset();
    pool.reset();
    if (!root.empty()) std::filesystem::remove_all(root);
  }

  void serve(const AnswerRoom::Limits& room = {}) {
    server.reset();
    auto listening =
        DataServer::listen(loop, {.path = root / "data.sock"}, nullptr, *pool, 2, room);
    ASSERT_TRUE(listening) << listening.error().message;
    server = std::move(*listening);
  }
  void create(const std::string& name, uint64_t bytes) {
    Result<ReplicaChange> made = fail(ErrorCode::kTimeout, "no answer");
    pool->create(name, RandomFill{bytes, 1}, [&](Result<ReplicaChange> result) {
      made = std::move(result);
      if (made) ids[name] = made->id();
      loop.stop();
    });
    loop.run();
    ASSERT_TRUE(made) << made.error().message;
  }
  // `work` on a thread of its own, as the pool's workers are, while the loop runs here.
  void beside_the_loop(const std::function<void()>& work) {
    std::thread worker([&] {
      work();
      loop.stop();
    });
    loop.run();
    worker.join();
  }
  bool comes_true(const std::function<bool()>& condition) { return run_until(loop, condition); }
  Result<std::vector<std::byte>> read_all(const std::string& name, size_t chunk) {
    std::vector<std::byte> all, buffer(chunk);
    for (;;) {
      auto got = fetcher->read(address(), ids[name], all.size(), buffer);
      if (!got) return tl::unexpected(got.error());
      if (*got == 0) return all;
      all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(*got));
    }
  }
  std::string address() const { return server->address().to_string(); }

  std::map<std::string, DatasetId> ids;  // of what was created
  std::filesystem::path root;
  EventLoop loop;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<DataServer> server;
  std::unique_ptr<RemoteFetcher> fetcher;
};

}  // namespace tierpilot::agent
