// Daemons that take turns at reading from each other, over real connections: the nodes of a small
// cluster on one event loop, each with a pool, a data server and a fetcher of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "daemon/agent/data/data_server.h"
#include "daemon/agent/data/remote_fetcher.h"
#include "rpc/node.capnp.h"
#include "rpc/server.h"
#include "tests/unit/daemon/run_until.h"

namespace tierpilot::agent {
namespace {
namespace fs = std::filesystem;

constexpr size_t kReaders = 2;
constexpr uint64_t kBytes = (2 << 20) + 321;
const DatasetId kGenes{"genes", 1};
const CancelFlag kNever{false};

// What the nodes of a test have read and hold, by the address of the source.
struct Traffic {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = true;  // reads wait until it is
  std::map<std::string, uint64_t> bytes;
  std::map<std::string, size_t> reading, most_reading;
};

// A fetcher that is looked at.
class WatchedSource final : public RemoteSource {
 public:
  WatchedSource(std::shared_ptr<RemoteSource> inner, Traffic& traffic)
      : inner_(std::move(inner)), traffic_(traffic) {}

  Result<size_t> read(const std::string& address, const DatasetId& id, uint64_t offset,
                      std::span<std::byte> into) override {
    {
      std::unique_lock lock(traffic_.mutex);
      traffic_.changed.wait(lock, [&] { return traffic_.open; });
    }
    auto got = inner_->read(address, id, offset, into);
    std::lock_guard lock(traffic_.mutex);
    if (got) traffic_.bytes[address] += *got;
    return got;
  }
  Result<TurnAnswer> turn(const std::string& address, const DatasetId& id, bool wait,
                          int64_t limit_ms, const CancelFlag& cancel) override {
    auto answer = inner_->turn(address, id, wait, limit_ms, cancel);
    if (answer && answer->turn)
      answer->turn = std::make_unique<Turn>(std::move(answer->turn), address, traffic_);
    return answer;
  }

 private:
  // Counts before the real one is given back, so that no two overlap that do not really.
  struct Turn final : ReadTurn {
    Turn(std::unique_ptr<ReadTurn> inner, std::string address, Traffic& traffic)
        : inner(std::move(inner)), address(std::move(address)), traffic(traffic) {
      std::lock_guard lock(traffic.mutex);
      auto& most = traffic.most_reading[this->address];
      most = std::max(most, ++traffic.reading[this->address]);
    }
    ~Turn() override { end(); }
    void done() override {
      end();
      inner->done();
    }
    void end() {
      std::lock_guard lock(traffic.mutex);
      if (!std::exchange(ended, true)) --traffic.reading[address];
    }
    const std::unique_ptr<ReadTurn> inner;
    const std::string address;
    Traffic& traffic;
    bool ended = false;
  };

  const std::shared_ptr<RemoteSource> inner_;
  Traffic& traffic_;
};

struct DataNode {
  DataNode(EventLoop& loop, const fs::path& root, Traffic& traffic)
      : fetcher(std::make_shared<RemoteFetcher>(loop, nullptr)) {
    PoolOptions options;
    options.fast_dir = root / "fast";
    options.fast_budget_bytes = 16 << 20;
    options.slow_dir = root / "slow";
    options.slow_budget_bytes = 16 << 20;
    pool = Pool::open(
               options, std::make_shared<WatchedSource>(fetcher, traffic),
               [&loop](auto work) { loop.post(std::move(work)); }, [](const ReplicaChange&) {})
               .value();
    server =
        DataServer::listen(loop, {.path = root / "data.sock"}, nullptr, *pool, kReaders).value();
    fetcher->set_reader(address());
  }
  ~DataNode() { fetcher->close(); }

  std::string address() const { return server->address().to_string(); }

  std::shared_ptr<RemoteFetcher> fetcher;
  std::unique_ptr<Pool> pool;
  std::unique_ptr<DataServer> server;
};

class DataTurns : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/dev/shm/tierpilot-turns-XXXXXX";  // the fast tier must be on a tmpfs
    if (!::mkdtemp(name)) GTEST_SKIP() << "no directory can be made in /dev/shm";
    root = name;
    origin = add_node();
  }
  void TearDown() override {
    others.clear();
    nodes.clear();
    if (!root.empty()) fs::remove_all(root);
  }

  DataNode* add_node() {
    const auto dir = root / std::to_string(nodes.size());
    fs::create_directory(dir);
    return nodes.emplace_back(std::make_unique<DataNode>(loop, dir, traffic)).get();
  }
  // One that only reads.
  RemoteFetcher& add_reader(const std::string& reader = {}) {
    auto& made = *others.emplace_back(std::make_unique<RemoteFetcher>(loop, nullptr));
    made.set_reader(reader);
    return made;
  }
  bool comes_true(const std::function<bool()>& condition) { return run_until(loop, condition); }
  // `question` on a thread of its own, as the pool's workers are.
  template <class Question>
  auto start(Question question) {
    using Answer = decltype(question());
    struct Asked {
      ~Asked() { thread.join(); }
      std::atomic<bool> answered = false;
      std::optional<Answer> answer;
      std::thread thread;
    };
    auto asked = std::make_unique<Asked>();
    asked->thread = std::thread([question, it = asked.get()] {
      it->answer.emplace(question());
      it->answered = true;
    });
    return asked;
  }
  auto start_turn(RemoteFetcher& reader, bool wait = true, const CancelFlag& cancel = kNever) {
    return start([&reader, &cancel, wait, address = origin->address()] {
      return reader.turn(address, kGenes, wait, 60'000, cancel);
    });
  }
  std::unique_ptr<ReadTurn> turn_of(RemoteFetcher& reader) {
    auto asked = start_turn(reader);
    EXPECT_TRUE(comes_true([&] { return asked->answered.load(); }));
    EXPECT_TRUE(*asked->answer && (**asked->answer).turn);
    return std::move((**asked->answer).turn);
  }
  bool becomes(size_t reading, size_t waiting) {
    return comes_true([&] {
      const auto now = origin->server->turns();
      return now.reading == reading && now.waiting == waiting;
    });
  }

  fs::path root;
  Traffic traffic;
  EventLoop loop;
  std::vector<std::unique_ptr<DataNode>> nodes;
  std::vector<std::unique_ptr<RemoteFetcher>> others;
  DataNode* origin = nullptr;
};

TEST_F(DataTurns, ManyReadersOfOneDatasetReadMostOfItFromEachOther) {
  constexpr size_t kNodes = 12;
  std::optional<DatasetId> made;
  origin->pool->create("genes", RandomFill{kBytes, 1}, [&](Result<ReplicaChange> result) {
    if (result) made = result->id();
  });
  ASSERT_TRUE(comes_true([&] { return made.has_value(); }));
  std::vector<std::byte> expected(kBytes);
  for (size_t at = 0; at < kBytes;)
    at += origin->pool->read(*made, at, std::span(expected).subspan(at)).value();

  traffic.open = false;
  std::vector<Result<Served>> served;
  for (size_t i = 0; i < kNodes; ++i)
    add_node()->pool->serve("reader",
                            {{.name = "genes",
                              .version = 1,
                              .bytes = kBytes,
                              .sources = {origin->address()},
                              .digest = made->digest}},
                            [&](Result<Served> result) { served.push_back(std::move(result)); });
  ASSERT_TRUE(becomes(kReaders, kNodes - kReaders)) << "all ask before the first has read";
  {
    std::lock_guard lock(traffic.mutex);
    traffic.open = true;
  }
  traffic.changed.notify_all();
  ASSERT_TRUE(comes_true([&] { return served.size() == kNodes; }));

  for (const auto& result : served) {
    ASSERT_TRUE(result) << result.error().message;
    std::vector<std::byte> got(kBytes + 1);
    std::ifstream file(result->items.at(0).path, std::ios::binary);
    file.read(reinterpret_cast<char*>(got.data()), static_cast<std::streamsize>(got.size()));
    got.resize(static_cast<size_t>(file.gcount()));
    EXPECT_TRUE(got == expected);
  }
  ASSERT_TRUE(becomes(0, 0));
  std::lock_guard lock(traffic.mutex);
  uint64_t all = 0;
  for (const auto& [address, bytes] : traffic.bytes) all += bytes;
  EXPECT_EQ(all, kNodes * kBytes);
  EXPECT_LE(2 * traffic.bytes[origin->address()], all);
  for (const auto& [address, most] : traffic.most_reading) EXPECT_LE(most, kReaders) << address;
}

TEST_F(DataTurns, WhoIsDoneIsWhereOthersAreSent) {
  const auto a = "unix:" + (root / "a.sock").string(), b = "unix:" + (root / "b.sock").string();
  auto turn = turn_of(add_reader(a));
  auto other = turn_of(add_reader(b));
  auto first = start_turn(add_reader());
  ASSERT_TRUE(becomes(2, 1));
  auto second = start_turn(add_reader());
  ASSERT_TRUE(becomes(2, 2));
  turn->done();
  turn.reset();
  ASSERT_TRUE(comes_true([&] { return first->answered && second->answered; }));
  ASSERT_TRUE(*first->answer && *second->answer);
  EXPECT_TRUE((**first->answer).turn);
  EXPECT_EQ((**second->answer).elsewhere, a);
  EXPECT_FALSE((**second->answer).turn);
  EXPECT_TRUE(becomes(2, 0));
}

TEST_F(DataTurns, NobodyIsSentToAFalseAddress) {
  auto turn = turn_of(add_reader("tls:10.0.0.7:7000"));
  auto other = turn_of(add_reader("nonsense"));
  auto first = start_turn(add_reader()), second = start_turn(add_reader());
  ASSERT_TRUE(becomes(2, 2));
  turn->done();
  other->done();
  ASSERT_TRUE(comes_true([&] { return first->answered && second->answered; }));
  for (const auto* asked : {first.get(), second.get()}) {
    ASSERT_TRUE(*asked->answer);
    EXPECT_TRUE((**asked->answer).turn);
    EXPECT_EQ((**asked->answer).elsewhere, "");
  }
}

TEST_F(DataTurns, WhoDoesNotWaitIsAnsweredAtOnce) {
  auto turn = turn_of(add_reader()), other = turn_of(add_reader());
  auto asked = start_turn(add_reader(), false);
  ASSERT_TRUE(comes_true([&] { return asked->answered.load(); }));
  ASSERT_TRUE(*asked->answer);
  EXPECT_FALSE((**asked->answer).turn);
  EXPECT_EQ((**asked->answer).elsewhere, "");
  EXPECT_TRUE(becomes(2, 0));
}

TEST_F(DataTurns, AReaderThatVanishesPassesItsTurnOn) {
  auto& vanishes = add_reader();
  auto turn = turn_of(vanishes), other = turn_of(add_reader());
  auto waits = start_turn(add_reader());
  ASSERT_TRUE(becomes(2, 1));
  vanishes.close();
  ASSERT_TRUE(comes_true([&] { return waits->answered.load(); }));
  ASSERT_TRUE(*waits->answer);
  EXPECT_TRUE((**waits->answer).turn);
  EXPECT_TRUE(becomes(2, 0));
}

TEST_F(DataTurns, AReaderThatVanishesLeavesTheLine) {
  auto turn = turn_of(add_reader()), other = turn_of(add_reader());
  auto& vanishes = add_reader();
  auto waits = start_turn(vanishes);
  ASSERT_TRUE(becomes(2, 1));
  vanishes.close();
  EXPECT_TRUE(becomes(2, 0));
  ASSERT_TRUE(comes_true([&] { return waits->answered.load(); }));
  EXPECT_EQ(waits->answer->error().code, ErrorCode::kUnavailable);
}

TEST_F(DataTurns, CancelLeavesTheLine) {
  auto turn = turn_of(add_reader()), other = turn_of(add_reader());
  CancelFlag cancel{false};
  auto waits = start_turn(add_reader(), true, cancel);
  ASSERT_TRUE(becomes(2, 1));
  cancel = true;
  ASSERT_TRUE(comes_true([&] { return waits->answered.load(); }));
  EXPECT_EQ(waits->answer->error().code, ErrorCode::kConflict);
  EXPECT_TRUE(becomes(2, 0));
}

TEST_F(DataTurns, ATurnThatIsGivenBackIsFree) {
  for (size_t i = 0; i < 2 * kReaders; ++i) turn_of(add_reader());
  EXPECT_TRUE(becomes(0, 0));
  EXPECT_EQ(origin->server->turns().turns, 2 * kReaders);
}

TEST_F(DataTurns, NamesThatAreTooLongAreRefused) {
  auto& reader = add_reader();
  auto asked = start([&] {
    return reader.turn(origin->address(), {std::string(500, 'x'), 1}, true, 60'000, kNever);
  });
  ASSERT_TRUE(comes_true([&] { return asked->answered.load(); }));
  EXPECT_EQ(asked->answer->error().code, ErrorCode::kExhausted);
}

// A daemon from before there were turns.
class OlderSource final : public wire::DataSource::Server {
  kj::Promise<void> read(ReadContext context) override {
    const std::string_view text = "older";
    const auto offset = std::min<size_t>(context.getParams().getOffset(), text.size());
    context.getResults().setData(kj::arrayPtr(
        reinterpret_cast<const kj::byte*>(text.data()) + offset, text.size() - offset));
    return kj::READY_NOW;
  }
};

TEST_F(DataTurns, AnOlderDaemonIsReadWithoutATurn) {
  const Address address{.path = root / "older.sock"};
  const auto server = RpcServer::listen(loop, address, nullptr, {}, [](const Peer&, const auto&) {
                        return wire::DataSource::Client(kj::heap<OlderSource>());
                      }).value();
  bool served = false;
  add_node()->pool->serve("reader",
                          {{.name = "old",
                            .version = 1,
                            .bytes = 5,
                            .sources = {address.to_string()},
                            .digest = digest_of("older")}},
                          [&](Result<Served> result) {
                            EXPECT_TRUE(result) << result.error().message;
                            served = true;
                          });
  ASSERT_TRUE(comes_true([&] { return served; }));
}

}  // namespace
}  // namespace tierpilot::agent
