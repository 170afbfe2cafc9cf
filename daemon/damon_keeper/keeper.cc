#include "daemon/damon_keeper/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace tierpilot {
namespace {

int64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

tl::unexpected<Error> watches_nothing() {
  return fail(ErrorCode::kConflict, "DAMON: this connection watches no process");
}

bool send_reply(int socket, const Result<DamonReading>& reply) {
  const auto bytes = encode(reply);
  return ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

struct Keeper::Connection {
  UniqueFd socket;
  Credentials peer;
  pid_t pid = 0;
  uint64_t start_ticks = 0;               // of pid
  std::unique_ptr<DamonMonitor> monitor;  // null: watches nothing
  int64_t served_cpu_ns = 0;

  // Its privileges may be others than when the watch began: it may have started another program.
  // Ends the watch then.
  Status recheck(const Sysroot& sysroot) {
    auto status = check_target(sysroot);
    if (!status) monitor.reset();
    return status;
  }

 private:
  Status check_target(const Sysroot& sysroot) const {
    const auto target = read_credentials(sysroot, pid);
    if (!target) return tl::unexpected(target.error());
    if (target->start_ticks != start_ticks || !target->has_memory)
      return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid));
    return may_watch(peer, *target);
  }
};

Keeper::Keeper(const Sysroot& sysroot, UniqueFd listener, int stop, KeeperOptions options)
    : sysroot_(sysroot),
      listener_(std::move(listener)),
      stop_(stop),
      options_(std::move(options)),
      files_(sysroot, options_.files) {}

Keeper::~Keeper() = default;

Status Keeper::run() {
  for (;;) {
    std::vector<pollfd> waits{{stop_, POLLIN, 0}};
    for (const auto& connection : connections_)
      waits.push_back({connection->socket.get(), POLLIN, 0});
    // Who comes when all places are taken waits in the listener's queue.
    if (connections_.size() < options_.max_connections)
      waits.push_back({listener_.get(), POLLIN, 0});
    const int ready =
        ::poll(waits.data(), waits.size(), connections_.empty() ? options_.idle_ms : -1);
    if (ready < 0 && errno != EINTR) return fail_errno(errno, "poll");
    if (ready == 0 || waits[0].revents != 0) break;
    if (ready < 0) continue;
    for (size_t i = 0; i < connections_.size(); ++i)
      if (waits[i + 1].revents != 0 && !serve(*connections_[i])) connections_[i].reset();
    const bool called = waits.size() > connections_.size() + 1 && waits.back().revents != 0;
    std::erase(connections_, nullptr);
    if (called) accept_one();
    const bool watching = std::any_of(connections_.begin(), connections_.end(),
                                      [](const auto& each) { return each->monitor != nullptr; });
    if (!watching) files_.close();
  }
  connections_.clear();
  files_.close();
  return {};
}

bool Keeper::has_room(const Credentials& peer, bool watching) const {
  if (may_trace_all(peer)) return true;
  size_t plain = 0, of_user = 0;
  for (const auto& each : connections_) {
    if (!each || may_trace_all(each->peer) || (watching && !each->monitor)) continue;
    ++plain;
    if (each->peer.uids[1] == peer.uids[1]) ++of_user;
  }
  return watching
             ? plain < options_.max_plain_watches && of_user < options_.max_user_watches
             : plain < options_.max_plain_connections && of_user < options_.max_user_connections;
}

void Keeper::accept_one() {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const auto peer = peer_credentials(sysroot_, socket.get());
  if (!peer) {
    send_reply(socket.get(), tl::unexpected(peer.error()));
    return;
  }
  if (!has_room(*peer, false)) {
    send_reply(socket.get(), fail(ErrorCode::kExhausted,
                                  "DAMON: too many clients without CAP_SYS_PTRACE at a time"));
    return;
  }
  connections_.push_back(std::make_unique<Connection>());
  connections_.back()->socket = std::move(socket);
  connections_.back()->peer = *peer;
}

bool Keeper::serve(Connection& connection) {
  const int64_t began_ns = thread_cpu_ns();
  // One byte more than a request: what is longer must not pass for one.
  std::byte packet[kKeeperRequestBytes + 1];
  const ssize_t got = ::recv(connection.socket.get(), packet, sizeof packet, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  const auto request = decode_request({packet, static_cast<size_t>(got)});
  if (!request) {
    send_reply(connection.socket.get(), tl::unexpected(request.error()));
    return false;
  }
  auto reply = answer(connection, *request);
  if (reply) reply->cpu_ns += connection.served_cpu_ns;
  const bool sent = send_reply(connection.socket.get(), reply);
  connection.served_cpu_ns += thread_cpu_ns() - began_ns;
  return sent;
}

Result<DamonReading> Keeper::answer(Connection& connection, const KeeperRequest& request) {
  const auto done = [](Status status) { return status.map([] { return DamonReading{}; }); };
  switch (request.kind) {
    case KeeperRequest::Kind::kCheck:
      return done(files_.check());
    case KeeperRequest::Kind::kWatch:
      return done(watch(connection, request));
    case KeeperRequest::Kind::kRead:
      return read(connection);
    case KeeperRequest::Kind::kIntervals:
      return done(set_intervals(connection, request.attrs));
  }
  return watches_nothing();
}

Status Keeper::set_intervals(Connection& connection, const DamonAttrs& attrs) {
  if (connection.pid == 0) return watches_nothing();
  if (!may_trace_all(connection.peer))
    if (auto status = check_plain(attrs); !status) return status;
  if (auto status = connection.recheck(sysroot_); !status) return status;
  if (!connection.monitor) return watches_nothing();
  return connection.monitor->set_intervals(attrs.sample_us, attrs.aggregation_us);
}

Status Keeper::watch(Connection& connection, const KeeperRequest& request) {
  if (connection.monitor)
    return fail(ErrorCode::kConflict,
                fmt::format("DAMON: this connection watches process {}", connection.pid));
  if (!may_trace_all(connection.peer))
    if (auto status = check_plain(request.attrs); !status) return status;
  if (!has_room(connection.peer, true))
    return fail(ErrorCode::kExhausted,
                fmt::format("DAMON: without CAP_SYS_PTRACE {} processes can be watched for a user, "
                            "and {} for all",
                            options_.max_user_watches, options_.max_plain_watches));
  const auto target = read_credentials(sysroot_, request.pid);
  if (!target) return tl::unexpected(target.error());
  connection.pid = request.pid;
  connection.start_ticks = target->start_ticks;
  if (auto status = connection.recheck(sysroot_); !status) return status;
  auto monitor = files_.watch(request.pid, request.attrs);
  if (!monitor) return tl::unexpected(monitor.error());
  // Once more: another process may have got the number since.
  if (auto status = connection.recheck(sysroot_); !status) return status;
  connection.monitor = std::move(*monitor);
  return {};
}

Result<DamonReading> Keeper::read(Connection& connection) {
  if (connection.pid == 0) return watches_nothing();
  auto reading =
      connection.monitor ? connection.monitor->read() : Result<DamonReading>(watches_nothing());
  if (auto status = connection.recheck(sysroot_); !status) return tl::unexpected(status.error());
  return reading;
}

}  // namespace tierpilot
