// Garbage thrown at the sockets of a coordinator and a daemon while a client works.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/unique_fd.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

constexpr int kThrowsEach = 2500;

UniqueFd dial(const std::filesystem::path& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{5, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_un target{};
  target.sun_family = AF_UNIX;
  std::strncpy(target.sun_path, path.c_str(), sizeof target.sun_path - 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&target), sizeof target) != 0) fd.reset();
  return fd;
}

std::string header(const char* magic, uint32_t bytes) {
  std::string text(magic, 4);
  for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(bytes >> shift);
  return text;
}

std::string noise(std::mt19937& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// One hostile message; the kinds take turns.
std::string garbage(int kind, std::mt19937& random) {
  switch (kind % 7) {
    case 0:
      return noise(random, 1 + random() % 300);
    case 1:  // oversized
      return header("TPF1", 0xfffffff8) + noise(random, 64);
    case 2:  // truncated: the peer leaves in the middle
      return header("TPF1", 4096) + noise(random, random() % 4000);
    case 3:  // a whole frame that is no message
      return header("TPF1", 256) + noise(random, 256);
    case 4:  // a segment count of FFFFFFFF
      return header("TPF1", 64) + std::string(4, '\xff') + noise(random, 60);
    case 5:  // odd size
      return header("TPF1", 13) + noise(random, 13);
    default:  // another protocol
      return "GET / HTTP/1.1\r\nHost: tierpilot\r\n\r\n";
  }
}

// Returns how many connections could be made.
int throw_garbage(const std::filesystem::path& socket, unsigned seed) {
  std::mt19937 random(seed);
  int made = 0;
  for (int i = 0; i < kThrowsEach; ++i) {
    const UniqueFd fd = dial(socket);
    if (!fd) continue;
    ++made;
    const auto bytes = garbage(i, random);
    send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    // Some wait for the answer, some slam the door.
    char answer[256];
    if (i % 3 == 0) {
      shutdown(fd.get(), SHUT_WR);
      recv(fd.get(), answer, sizeof answer, 0);
    }
  }
  return made;
}

TEST(Garbage, HarmsNeitherServersNorTheirClients) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.nodes = 2});
  ASSERT_TRUE(cluster.client().add_dataset_zeros("far", 1 << 20, "n1"));
  std::atomic<int> made = 0, finished = 0;
  std::vector<std::thread> throwers;
  const std::filesystem::path sockets[] = {cluster.folder() / "c.sock", cluster.data_socket(0)};
  for (unsigned seed = 0; seed < 4; ++seed)
    throwers.emplace_back([&, seed] {
      made += throw_garbage(sockets[seed % 2], seed);
      ++finished;
    });
  int worked = 0;
  do {
    auto task = shell_task("wc -c < \"$TIERPILOT_DATASET_FAR\"");
    task.datasets = {{"far", false}};
    task.node = "n2";  // fetches from the daemon under fire
    const auto submitted = cluster.client().submit({task});
    EXPECT_TRUE(submitted) << submitted.error().message;
    if (!submitted) break;
    const auto ended = cluster.client().wait(submitted->tasks[0]);
    EXPECT_TRUE(ended) << ended.error().message;
    if (!ended) break;
    EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
    ++worked;
  } while (finished < 4);
  for (auto& thrower : throwers) thrower.join();
  EXPECT_GT(worked, 0);
  EXPECT_GT(made, 4 * kThrowsEach / 2) << "most connections were taken";
  EXPECT_TRUE(cluster.coordinator().running());
  for (int node : {0, 1}) EXPECT_TRUE(cluster.node(node).running());
  EXPECT_TRUE(cluster.nodes_are_up(2));
  const auto health = cluster.client().health();
  ASSERT_TRUE(health) << health.error().message;
  // Of the coordinator's half most are frames that were read and refused.
  EXPECT_GT((*health)["rejected_frames"].get<int>(), kThrowsEach / 4) << health->dump(2);
}

}  // namespace
}  // namespace tierpilot::test
