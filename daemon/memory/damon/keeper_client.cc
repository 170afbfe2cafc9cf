#include "daemon/memory/damon/keeper_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"

namespace tierpilot {
namespace {

class Connection {
 public:
  static Result<Connection> open(const std::string& path, int timeout_ms) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (path.size() >= sizeof address.sun_path)
      return fail(ErrorCode::kInvalid, fmt::format("socket '{}': the path is too long", path));
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket) return fail_errno(errno, "a Unix socket");
    const timeval limit{.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    // The limit of sending is that of connecting, too.
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
      ::setsockopt(socket.get(), SOL_SOCKET, option, &limit, sizeof limit);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return refused(path, errno);
    return Connection(std::move(socket));
  }

  Result<DamonReading> ask(const KeeperRequest& request) {
    const auto bytes = encode(request);
    KeeperBytes reply(kMaxKeeperReplyBytes);
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) return gone(errno);
    const ssize_t got = ::recv(socket_.get(), reply.data(), reply.size(), 0);
    if (got <= 0) return gone(got < 0 ? errno : ECONNRESET);
    return decode_reply({reply.data(), static_cast<size_t>(got)});
  }

 private:
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  static tl::unexpected<Error> refused(const std::string& path, int err) {
    if (err == ENOENT || err == ECONNREFUSED)
      return fail(ErrorCode::kUnreachable,
                  fmt::format("'{}': nobody listens: start tierpilot-damon.socket", path));
    if (err == EACCES)
      return fail(ErrorCode::kDenied,
                  fmt::format("'{}' is for members of the group tierpilot", path));
    return fail_errno(err, fmt::format("'{}'", path));
  }
  static tl::unexpected<Error> gone(int err) {
    const char* why = err == EAGAIN ? "does not answer" : "was stopped or killed";
    return fail(ErrorCode::kUnreachable, fmt::format("DAMON: tierpilot-damon {}", why));
  }

  UniqueFd socket_;
};

class KeptMonitor final : public DamonMonitor {
 public:
  KeptMonitor(std::string path, int timeout_ms, pid_t pid, const DamonAttrs& attrs)
      : path_(std::move(path)), timeout_ms_(timeout_ms), pid_(pid), attrs_(attrs) {}

  Status connect() {
    auto connection = Connection::open(path_, timeout_ms_);
    if (!connection) return tl::unexpected(connection.error());
    connection_ = std::move(*connection);
    // It counts from its beginning.
    earlier_cpu_ns_ += std::exchange(latest_cpu_ns_, 0);
    const auto reply = ask(KeeperRequest::Kind::kWatch);
    if (!reply) connection_.reset();
    return reply.map([](const auto&) {});
  }

  Result<DamonReading> read() override {
    if (!connection_)
      if (auto status = connect(); !status) return tl::unexpected(status.error());
    auto reading = ask(KeeperRequest::Kind::kRead);
    // The keeper watches it no more, but would, as it may be watched again.
    if (!reading && reading.error().code == ErrorCode::kConflict) connection_.reset();
    if (!reading) return reading;
    latest_cpu_ns_ = std::max(latest_cpu_ns_, reading->cpu_ns);
    reading->cpu_ns = earlier_cpu_ns_ + latest_cpu_ns_;
    return reading;
  }

  Status set_intervals(int64_t sample_us, int64_t aggregation_us) override {
    const auto before = attrs_;
    attrs_.sample_us = sample_us;
    attrs_.aggregation_us = aggregation_us;
    if (!connection_) return {};  // they are told to the next keeper
    const auto reply = ask(KeeperRequest::Kind::kIntervals);
    if (!reply && reply.error().code != ErrorCode::kUnreachable) attrs_ = before;
    return reply.map([](const auto&) {});
  }

 private:
  Result<DamonReading> ask(KeeperRequest::Kind kind) {
    auto reply = connection_->ask({.kind = kind, .pid = pid_, .attrs = attrs_});
    if (!reply && reply.error().code == ErrorCode::kUnreachable) connection_.reset();
    return reply;
  }

  const std::string path_;
  const int timeout_ms_;
  const pid_t pid_;
  DamonAttrs attrs_;
  std::optional<Connection> connection_;
  int64_t earlier_cpu_ns_ = 0;  // of connections before
  int64_t latest_cpu_ns_ = 0;
};

}  // namespace

KeeperClient::KeeperClient(const Sysroot& sysroot, KeeperClientOptions options)
    : path_(sysroot.resolve(options.socket).string()), options_(std::move(options)) {}

Status KeeperClient::check() const {
  return Connection::open(path_, options_.timeout_ms)
      .and_then([](Connection connection) { return connection.ask({}); })
      .map([](const auto&) {});
}

Result<std::unique_ptr<DamonMonitor>> KeeperClient::watch(pid_t pid, const DamonAttrs& attrs) {
  auto monitor = std::make_unique<KeptMonitor>(path_, options_.timeout_ms, pid, attrs);
  if (auto status = monitor->connect(); !status) return tl::unexpected(status.error());
  return monitor;
}

}  // namespace tierpilot
