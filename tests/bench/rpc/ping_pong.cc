#include "tests/bench/rpc/ping_pong.h"

#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace tierpilot::bench {
namespace {

// Two ends of a socket, the far one served by a thread: for each byte that comes, `answer` bytes.
class Partner {
 public:
  explicit Partner(size_t answer_bytes) {
    int ends[2];
    KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    here_.reset(ends[0]);
    thread_ = std::thread([there = UniqueFd(ends[1]), answer_bytes] {
      const std::vector<char> answer(answer_bytes, 'x');
      char asked[kMostAsked];
      ssize_t count;
      while ((count = ::read(there.get(), asked, sizeof asked)) > 0)
        for (ssize_t i = 0; i < count; ++i) write_all(there.get(), answer);
    });
  }
  ~Partner() {
    here_.reset();
    thread_.join();
  }

  void ask() { KJ_SYSCALL(::write(here_.get(), "x", 1)); }
  // How many bytes of answers came.
  size_t take(std::vector<char>& room) {
    ssize_t count;
    KJ_SYSCALL(count = ::read(here_.get(), room.data(), room.size()));
    return static_cast<size_t>(count);
  }

 private:
  static constexpr size_t kMostAsked = 4096;

  static void write_all(int fd, const std::vector<char>& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      ssize_t count;
      KJ_SYSCALL(count = ::write(fd, bytes.data() + done, bytes.size() - done));
      done += static_cast<size_t>(count);
    }
  }

  UniqueFd here_;
  std::thread thread_;
};

}  // namespace

Histogram socket_ping_pong_ns(int round_trips) {
  Partner partner(1);
  Histogram latency_ns;
  std::vector<char> room(1);
  for (int i = 0; i < round_trips; ++i) {
    const int64_t start_ns = system_clock().boot_ns();
    partner.ask();
    partner.take(room);
    latency_ns.add(static_cast<uint64_t>(system_clock().boot_ns() - start_ns));
  }
  return latency_ns;
}

double socket_answers_per_s(int count, int window, size_t answer_bytes) {
  Partner partner(answer_bytes);
  std::vector<char> room(std::max<size_t>(answer_bytes, 64 << 10));
  const auto total = static_cast<size_t>(count) * answer_bytes;
  const int64_t start_ns = system_clock().boot_ns();
  int asked = 0;
  for (size_t came = 0; came < total; came += partner.take(room)) {
    const auto answered = static_cast<int>(came / answer_bytes);
    while (asked < count && asked - answered < window) {
      partner.ask();
      ++asked;
    }
  }
  return count / (static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9);
}

}  // namespace tierpilot::bench
