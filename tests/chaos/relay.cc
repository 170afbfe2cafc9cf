#include "tests/chaos/relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace tierpilot::chaos {
namespace {

constexpr int kPollMs = 20;
constexpr size_t kMostBytes = 65536;
constexpr size_t kSlowBytes = 512;  // each kPollMs

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

UniqueFd make_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  return fd;
}

}  // namespace

Relay::Relay(const std::filesystem::path& own, std::filesystem::path other)
    : other_(std::move(other)), listener_(make_socket()) {
  const auto address = address_of(own);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 8) != 0)
    throw std::system_error(errno, std::generic_category(), own.string());
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  stop_ = true;
  thread_.join();
}

// Where nobody listens, the connection ends at once.
void Relay::accept_one() {
  Pair pair{UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)), make_socket()};
  const auto address = address_of(other_);
  if (pair.daemon && ::connect(pair.coordinator.get(), reinterpret_cast<const sockaddr*>(&address),
                               sizeof address) == 0)
    pairs_.push_back(std::move(pair));
}

// False: one of the ends is gone.
bool Relay::pass_on(int from, int to, size_t most_bytes) {
  char bytes[kMostBytes];
  const ssize_t got = ::recv(from, bytes, most_bytes, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t now = ::send(to, bytes + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (now < 0 && errno != EINTR) return false;
    sent += std::max<ssize_t>(now, 0);
  }
  return got > 0;
}

void Relay::run() {
  while (!stop_) {
    std::vector<pollfd> looked{{listener_.get(), POLLIN, 0}};
    for (const auto& pair : pairs_) {
      looked.push_back({cut_up_ ? -1 : pair.daemon.get(), POLLIN, 0});  // -1: not looked at
      looked.push_back({cut_down_ ? -1 : pair.coordinator.get(), POLLIN, 0});
    }
    if (::poll(looked.data(), looked.size(), kPollMs) <= 0) continue;
    if (slow_) std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
    const size_t most = slow_ ? kSlowBytes : kMostBytes;
    size_t at = 1;
    for (auto& pair : pairs_) {
      const bool up = looked[at].revents != 0 && !cut_up_;
      const bool down = looked[at + 1].revents != 0 && !cut_down_;
      at += 2;
      if (up && !pass_on(pair.daemon.get(), pair.coordinator.get(), most)) pair.over = true;
      if (down && !pass_on(pair.coordinator.get(), pair.daemon.get(), most)) pair.over = true;
    }
    std::erase_if(pairs_, [](const Pair& pair) { return pair.over; });
    if (looked[0].revents != 0) accept_one();
  }
}

}  // namespace tierpilot::chaos
