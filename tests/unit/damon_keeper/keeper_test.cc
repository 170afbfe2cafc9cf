// The keeper and its clients on a made-up machine: the kernel's files are made up, the socket and
// who is at its ends are real.
#include "daemon/damon_keeper/keeper.h"

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "daemon/memory/damon/keeper_client.h"
#include "daemon/memory/heat/damon.h"
#include "tests/unit/damon_keeper/proc_entry.h"
#include "tests/unit/memory/damon_machine.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
constexpr uint64_t kTrace = uint64_t{1} << CAP_SYS_PTRACE;
const std::string kClaim = "/run/tierpilot-damon/claim";

class KeeperTest : public DamonMachine {
 protected:
  void SetUp() override {
    make_damon();
    std::filesystem::create_directories(sysroot.resolve("/run/tierpilot-damon"));
    write_proc_entry(sysroot, ::getpid(), {});
    write_proc_entry(sysroot, 42, {});
  }
  void TearDown() override { stop(); }

  void start(KeeperOptions options = {}) {
    stop();
    options.files.max_processes = 1;
    listener_ = listen();
    stop_event_.reset(::eventfd(0, EFD_CLOEXEC));
    keeper_ = std::thread([this, options, listener = std::move(listener_)]() mutable {
      ended_well_ =
          Keeper(sysroot, std::move(listener), stop_event_.get(), options).run().has_value();
    });
  }
  void stop() {
    if (!keeper_.joinable()) return;
    ::eventfd_write(stop_event_.get(), 1);
    join();
  }
  void join() {
    keeper_.join();
    EXPECT_TRUE(ended_well_);
    ::unlink(path().c_str());
  }
  std::string path() const { return sysroot.resolve(kKeeperSocket).string(); }

  UniqueFd socket_at(sockaddr_un& address) const {
    address = {.sun_family = AF_UNIX, .sun_path = {}};
    EXPECT_LT(path().size(), sizeof address.sun_path);
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  }
  UniqueFd listen() const {
    sockaddr_un address;
    auto socket = socket_at(address);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket.get(), 16), 0);
    return socket;
  }
  UniqueFd call() const {
    sockaddr_un address;
    auto socket = socket_at(address);
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  // Nothing: the keeper has hung up.
  static std::optional<Result<DamonReading>> ask(const UniqueFd& socket, const KeeperBytes& bytes) {
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    KeeperBytes reply(kMaxKeeperReplyBytes);
    const ssize_t got = ::recv(socket.get(), reply.data(), reply.size(), 0);
    if (got <= 0) return {};
    return decode_reply(std::span(reply).first(static_cast<size_t>(got)));
  }
  bool becomes(const std::string& file, const std::string& text) {
    for (int i = 0; i < 2000 && read(file) != text; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return read(file) == text;
  }

  UniqueFd listener_, stop_event_;
  std::thread keeper_;
  bool ended_well_ = false;
};

const KeeperRequest kWatch42{.kind = KeeperRequest::Kind::kWatch, .pid = 42};
const KeeperRequest kReadIt{.kind = KeeperRequest::Kind::kRead};

TEST_F(KeeperTest, WatchesForAClientAndGivesDamonBack) {
  start();
  KeeperClient client(sysroot);
  ASSERT_TRUE(client.check());
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0") << "nobody watches";
  {
    auto monitor = client.watch(42, {.sample_us = 7000}).value();
    EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "1");
    EXPECT_EQ(read(kKdamonds + "0/state"), "on");
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/targets/0/pid_target"), "42");
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/schemes/0/action"), "stat") << "only to watch";
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/monitoring_attrs/intervals/sample_us"), "7000");
    add_region(0, 4096, 8192, 0);
    add_region(1, 1 << 20, 2 << 20, 7);
    const auto reading = monitor->read().value();
    EXPECT_EQ(reading.regions, (std::vector<DamonRegion>{{1 << 20, 2 << 20, 7}}));
    EXPECT_TRUE(monitor->set_intervals(8000, 240'000));
    EXPECT_EQ(read(kKdamonds + "0/contexts/0/monitoring_attrs/intervals/aggr_us"), "240000");
    EXPECT_GT(monitor->read().value().cpu_ns, 0) << "the keeper's own";
  }
  EXPECT_TRUE(becomes(kKdamonds + "nr_kdamonds", "0"));
  EXPECT_EQ(read(kKdamonds + "0/state"), "off");
  EXPECT_TRUE(becomes(kClaim, "missing"));
}

TEST_F(KeeperTest, IsTheTrackersSecondWay) {
  std::vector<std::unique_ptr<DamonAccess>> ways;
  ways.push_back(std::make_unique<DamonFiles>(sysroot));
  ways.push_back(std::make_unique<KeeperClient>(sysroot));
  DamonSource source(std::move(ways), {});
  // As somebody else's: the files are no way then.
  start();
  const auto other = call();
  ASSERT_TRUE(ask(other, encode(kWatch42)).value());
  EXPECT_EQ(source.offer().way, "through tierpilot-damon");
  stop();
  EXPECT_EQ(source.offer().way, "through its files");
  write(kKdamonds + "nr_kdamonds", "3");
  const auto offer = source.offer();
  ASSERT_FALSE(offer.available);
  EXPECT_THAT(offer.available.error().message, HasSubstr("3 kdamonds belong to somebody else"));
  EXPECT_THAT(offer.available.error().message, HasSubstr("start tierpilot-damon.socket"));
}

TEST_F(KeeperTest, AClientGoesOnWithTheNextKeeper) {
  start();
  auto monitor = KeeperClient(sysroot).watch(42, {}).value();
  ASSERT_TRUE(monitor->read());
  stop();
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0") << "it does not wait for its clients";
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kUnreachable) << "there is none";
  EXPECT_TRUE(monitor->set_intervals(8000, 240'000));
  start();
  ASSERT_TRUE(monitor->read());
  EXPECT_EQ(read(kKdamonds + "0/contexts/0/monitoring_attrs/intervals/sample_us"), "8000");
}

TEST_F(KeeperTest, TurnsOffWhatAKilledOneLeft) {
  write(kKdamonds + "nr_kdamonds", "1");
  write(kKdamonds + "0/state", "on");
  write(kClaim, "boot-1");
  start();
  EXPECT_TRUE(KeeperClient(sysroot).check());
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
  EXPECT_EQ(read(kKdamonds + "0/state"), "off");
}

TEST_F(KeeperTest, LeavesTheKdamondsOfOthersAlone) {
  write(kKdamonds + "nr_kdamonds", "1");
  start();
  KeeperClient client(sysroot);
  EXPECT_THAT(client.check().error().message, HasSubstr("in use"));
  EXPECT_THAT(client.watch(42, {}).error().message, HasSubstr("in use"));
  stop();
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "1");
}

TEST_F(KeeperTest, EndsWhenNobodyNeedsIt) {
  start({.idle_ms = 50});
  join();
}

TEST_F(KeeperTest, ProcessesOfOthersNeedTheCapability) {
  write_proc_entry(sysroot, 42, {.uid = ::getuid() + 1});
  start();
  KeeperClient client(sysroot);
  EXPECT_EQ(client.watch(42, {}).error().code, ErrorCode::kDenied);
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
  write_proc_entry(sysroot, ::getpid(), {.capabilities = kTrace});
  const auto watched = client.watch(42, {});
  // Kernels before 6.5 do not tell who the client is.
  if (!watched && watched.error().code == ErrorCode::kDenied) GTEST_SKIP() << "no SO_PEERPIDFD";
  EXPECT_TRUE(watched);
}

TEST_F(KeeperTest, NoReadingOfAProcessThatBecameAnother) {
  start();
  auto monitor = KeeperClient(sysroot).watch(42, {}).value();
  ASSERT_TRUE(monitor->read());
  write_proc_entry(sysroot, 42, {.uid = ::getuid() + 1});
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kDenied) << "it started a setuid program";
  EXPECT_TRUE(becomes(kKdamonds + "nr_kdamonds", "0")) << "nor is it watched on";
  EXPECT_EQ(monitor->set_intervals(6000, 200'000).error().code, ErrorCode::kDenied);
  write_proc_entry(sysroot, 42, {.start_ticks = 2});
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kNotFound) << "another got its number";
  std::filesystem::remove_all(sysroot.resolve("/proc/42"));
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kNotFound);
}

TEST_F(KeeperTest, IntervalsAreSetOnlyForWhomMayWatch) {
  start();
  auto monitor = KeeperClient(sysroot).watch(42, {}).value();
  write_proc_entry(sysroot, 42, {.uid = ::getuid() + 1});
  EXPECT_EQ(monitor->set_intervals(6000, 200'000).error().code, ErrorCode::kDenied);
  EXPECT_TRUE(becomes(kKdamonds + "nr_kdamonds", "0"));
  write_proc_entry(sysroot, 42, {});
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kConflict) << "the watch is over";
  EXPECT_TRUE(monitor->read()) << "another begins";
}

TEST_F(KeeperTest, AClientThatWasRefusedAsksAgain) {
  start();
  auto monitor = KeeperClient(sysroot).watch(42, {}).value();
  stop();
  EXPECT_EQ(monitor->read().error().code, ErrorCode::kUnreachable);
  write(kKdamonds + "nr_kdamonds", "3");
  start();
  EXPECT_THAT(monitor->read().error().message, HasSubstr("in use"));
  EXPECT_THAT(monitor->read().error().message, HasSubstr("in use"));
  write(kKdamonds + "nr_kdamonds", "0");
  EXPECT_TRUE(monitor->read());
}

TEST_F(KeeperTest, CpuTimeIsCountedOnceThroughAnUnreadableThread) {
  start();
  auto monitor = KeeperClient(sysroot).watch(42, {}).value();
  write(kKdamonds + "0/pid", "77");
  write("/proc/77/stat", "77 (kdamond.0) S 2 0 0 0 0 0 0 0 0 0 1000 2000 0 0");
  const int64_t first_ns = monitor->read().value().cpu_ns;
  EXPECT_GE(first_ns, 3000LL * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
  std::filesystem::remove(sysroot.resolve(kKdamonds + "0/pid"));
  EXPECT_GE(monitor->read().value().cpu_ns, first_ns);
  write(kKdamonds + "0/pid", "77");
  EXPECT_LT(monitor->read().value().cpu_ns, 2 * first_ns);
  stop();
  EXPECT_FALSE(monitor->read());
  std::filesystem::remove(sysroot.resolve(kKdamonds + "0/pid"));
  start();
  EXPECT_GT(monitor->read().value().cpu_ns, first_ns) << "and goes on with the next keeper";
}

TEST_F(KeeperTest, WatchesNoProcessThatHasNoMemory) {
  start();
  KeeperClient client(sysroot);
  EXPECT_EQ(client.watch(43, {}).error().code, ErrorCode::kNotFound);
  write_proc_entry(sysroot, 42, {.has_memory = false});
  EXPECT_EQ(client.watch(42, {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read(kKdamonds + "nr_kdamonds"), "0");
}

TEST_F(KeeperTest, OneConnectionWatchesOneProcess) {
  start();
  const auto socket = call();
  EXPECT_EQ(ask(socket, encode(kReadIt)).value().error().code, ErrorCode::kConflict);
  ASSERT_TRUE(ask(socket, encode(kWatch42)).value());
  EXPECT_EQ(ask(socket, encode(kWatch42)).value().error().code, ErrorCode::kConflict);
  EXPECT_TRUE(ask(socket, encode(kReadIt)).value());
  EXPECT_EQ(ask(call(), encode(kWatch42)).value().error().code, ErrorCode::kExhausted);
}

TEST_F(KeeperTest, ClientsWithoutTheCapabilityTakeOnlyAPart) {
  start({.max_plain_connections = 2, .max_plain_watches = 0});
  const auto first = call(), second = call();
  EXPECT_TRUE(ask(first, encode(KeeperRequest{})).value());
  EXPECT_THAT(ask(first, encode(kWatch42)).value().error().message, HasSubstr("CAP_SYS_PTRACE"));
  EXPECT_TRUE(ask(second, encode(KeeperRequest{})).value());
  EXPECT_EQ(ask(call(), {}).value().error().code, ErrorCode::kExhausted);
  write_proc_entry(sysroot, ::getpid(), {.capabilities = kTrace});
  const auto reply = ask(call(), encode(kWatch42));
  ASSERT_TRUE(reply);
  if (!*reply && reply->error().code == ErrorCode::kExhausted) GTEST_SKIP() << "no SO_PEERPIDFD";
  EXPECT_TRUE(*reply);
}

TEST_F(KeeperTest, AUserTakesOnlyAPartOfThat) {
  start({.max_user_connections = 2, .max_user_watches = 0});
  const auto first = call(), second = call();
  EXPECT_TRUE(ask(first, encode(KeeperRequest{})).value());
  EXPECT_TRUE(ask(second, encode(KeeperRequest{})).value());
  EXPECT_EQ(ask(first, encode(kWatch42)).value().error().code, ErrorCode::kExhausted);
  EXPECT_EQ(ask(call(), {}).value().error().code, ErrorCode::kExhausted);
}

TEST_F(KeeperTest, ClientsWithoutTheCapabilityMakeNobodyWaitForLong) {
  start();
  KeeperClient client(sysroot);
  for (const auto& attrs : {DamonAttrs{.sample_us = 4'999}, DamonAttrs{.aggregation_us = 250'001},
                            DamonAttrs{.max_regions = 301}})
    EXPECT_EQ(client.watch(42, attrs).error().code, ErrorCode::kDenied);
  auto monitor = client.watch(42, {}).value();
  EXPECT_EQ(monitor->set_intervals(5'000, 250'001).error().code, ErrorCode::kDenied);
  EXPECT_TRUE(monitor->set_intervals(5'000, 250'000));
  EXPECT_TRUE(monitor->read()) << "and goes on";
}

TEST_F(KeeperTest, MoreClientsThanPlacesWaitForTheirs) {
  start({.max_connections = 1});
  auto first = call();
  const auto second = call();
  ASSERT_TRUE(ask(first, encode(KeeperRequest{})).value());
  first.reset();
  EXPECT_TRUE(ask(second, encode(KeeperRequest{})).value());
}

TEST_F(KeeperTest, WhoSendsNonsenseIsDisconnectedAndNobodyElse) {
  start({.max_plain_connections = 32, .max_user_connections = 32});
  const auto good = call();
  ASSERT_TRUE(ask(good, encode(kWatch42)).value());
  auto longer = encode(kReadIt);
  longer.push_back({});
  KeeperBytes huge(200'000);
  for (const auto& bytes : {KeeperBytes(1), KeeperBytes(kKeeperRequestBytes), longer, huge}) {
    const auto bad = call();
    const auto reply = ask(bad, bytes);
    if (reply) {
      EXPECT_EQ(reply->error().code, ErrorCode::kInvalid);
    }
    EXPECT_FALSE(ask(bad, encode(KeeperRequest{}))) << "hung up";
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const auto bad = call();
    KeeperBytes noise(1 + random() % 100);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    ::send(bad.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  }
  EXPECT_TRUE(ask(good, encode(kReadIt)).value());
  EXPECT_EQ(read(kKdamonds + "0/contexts/0/targets/0/pid_target"), "42");
}

TEST_F(KeeperTest, WhoTakesNoReplyDoesNotStopTheKeeper) {
  start();
  const auto deaf = call();
  const auto bytes = encode(KeeperRequest{});
  for (int i = 0; i < 10'000; ++i)
    if (::send(deaf.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
        errno == EPIPE)
      break;
  EXPECT_TRUE(KeeperClient(sysroot).check());
}

TEST_F(KeeperTest, AClientSaysWhyThereIsNone) {
  EXPECT_THAT(KeeperClient(sysroot).check().error().message,
              HasSubstr("start tierpilot-damon.socket"));
  const Sysroot deep(std::string(200, 'x'));
  EXPECT_EQ(KeeperClient(deep).check().error().code, ErrorCode::kInvalid);
}

TEST_F(KeeperTest, AClientBelievesNoKeeperThatTalksNonsense) {
  const auto listener = listen();
  std::jthread impostor([&listener] {
    for (int i = 0; i < 2; ++i) {
      const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::byte request[kKeeperRequestBytes];
      (void)::recv(client.get(), request, sizeof request, 0);
      if (i == 0) ::send(client.get(), "nonsense", 8, MSG_NOSIGNAL);
    }
  });
  EXPECT_EQ(KeeperClient(sysroot).check().error().code, ErrorCode::kInvalid);
  EXPECT_EQ(KeeperClient(sysroot).check().error().code, ErrorCode::kUnreachable);
}

TEST_F(KeeperTest, AClientDoesNotWaitForEver) {
  const auto silent = listen();
  EXPECT_THAT(KeeperClient(sysroot, {.timeout_ms = 50}).check().error().message,
              HasSubstr("does not answer"));
}

}  // namespace
}  // namespace tierpilot
