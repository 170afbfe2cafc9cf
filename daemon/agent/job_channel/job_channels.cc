#include "daemon/agent/job_channel/job_channels.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace tierpilot::agent {
namespace {

constexpr int kBacklog = JobChannels::kMaxConnections;
constexpr int64_t kNoDescriptorsPauseMs = 100;
constexpr size_t kReadBytes = 16 << 10;  // at a time, so that others have their turn

Result<UniqueFd> listen_at(const std::filesystem::path& path, bool to_others) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto& text = path.native();
  if (text.size() >= sizeof address.sun_path)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("job channel {}: the path has {} bytes, a socket's at most {}: give the "
                    "daemon a shorter work_dir",
                    text, text.size(), sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return fail_errno(errno, "job channel: socket");
  // Others may try, and are looked at when they connect.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      (to_others && ::chmod(text.c_str(), 0666) != 0) || ::listen(fd.get(), kBacklog) != 0)
    return fail_errno(errno, "job channel " + text);
  return fd;
}

// As the kernel says who has connected. Without users of their own all tasks are the daemon's.
bool may_speak(int fd, std::optional<uid_t> user) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || (user && peer.uid == *user);
}

// A job that does not read what it is told is not waited for.
void send(int fd, const std::string& line) {
  (void)::send(fd, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool begins_too_long(const std::string& unread) {
  return std::min(unread.find('\n'), unread.size()) > kMaxJobLineBytes;
}

}  // namespace

JobChannels::JobChannels(EventLoop& loop, const Clock& clock)
    : loop_(loop), clock_(clock), self_(std::make_shared<JobChannels*>(this)) {}

JobChannels::~JobChannels() {
  while (!channels_.empty()) close(channels_.begin()->first);
}

Result<std::filesystem::path> JobChannels::open(AttemptId attempt,
                                                const std::filesystem::path& directory,
                                                std::optional<uid_t> user) {
  close(attempt);
  auto path = directory / kSocketName;
  auto listener = listen_at(path, user.has_value());
  if (!listener) return tl::unexpected(listener.error());
  auto& channel = channels_[attempt];
  channel.listener = std::move(*listener);
  channel.user = user;
  listen(attempt);
  return path;
}

void JobChannels::listen(AttemptId attempt) {
  const auto channel = channels_.find(attempt);
  if (channel == channels_.end()) return;
  loop_.watch_readable(channel->second.listener.get(), [this, attempt] { accept(attempt); });
}

void JobChannels::close(AttemptId attempt) {
  const auto channel = channels_.find(attempt);
  if (channel == channels_.end()) return;
  // What it said last may still lie in the sockets.
  std::vector<int> open;
  for (const auto& [fd, connection] : channel->second.connections) open.push_back(fd);
  for (const int fd : open) read(attempt, fd);
  for (const auto& [fd, connection] : channel->second.connections) loop_.unwatch(fd);
  loop_.unwatch(channel->second.listener.get());
  channels_.erase(channel);
}

void JobChannels::accept(AttemptId attempt) {
  auto& channel = channels_.at(attempt);
  UniqueFd fd(::accept4(channel.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return accept_failed(attempt, errno);
  // Who may not say more in this period must not come back as another one.
  if (++channel.accepted == kMaxAcceptsPerPeriod) rest(attempt, kPeriodMs);
  if (!may_speak(fd.get(), channel.user)) return;
  const int number = fd.get();
  const bool full = channel.connections.size() >= kMaxConnections;
  channel.connections[number].fd = std::move(fd);
  if (full) {
    send(number, job_error_line(fmt::format("{} connections are open already", kMaxConnections)));
    channel.connections.erase(number);
    return;
  }
  watch(attempt, number);
  for (const auto* line :
       {&channel.cores, &channel.share, &channel.checkpoint_now, &channel.stopped})
    if (!line->empty()) send(number, *line);
}

// The connection stays in the backlog and the socket readable: without a pause nothing else would
// have its turn.
void JobChannels::accept_failed(AttemptId attempt, int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
  uint64_t suppressed = 0;
  if (limiter_.admit(suppressed))
    spdlog::warn("job channel of task {}: cannot accept: {} ({} more such lines left out)",
                 attempt.task, std::strerror(error), suppressed);
  rest(attempt, kNoDescriptorsPauseMs);
}

void JobChannels::rest(AttemptId attempt, int64_t ms) {
  auto& channel = channels_.at(attempt);
  channel.accepted = 0;
  loop_.unwatch(channel.listener.get());
  loop_.detach(loop_.after_ms(ms).then([weak = std::weak_ptr(self_), attempt] {
    if (const auto self = weak.lock()) (*self)->listen(attempt);
  }),
               "job channel");
}

JobChannels::Connection* JobChannels::find(AttemptId attempt, int fd) {
  const auto channel = channels_.find(attempt);
  if (channel == channels_.end()) return nullptr;
  const auto connection = channel->second.connections.find(fd);
  return connection == channel->second.connections.end() ? nullptr : &connection->second;
}

void JobChannels::watch(AttemptId attempt, int fd) {
  loop_.watch_readable(fd, [this, attempt, fd] { read(attempt, fd); });
}

void JobChannels::read(AttemptId attempt, int fd) {
  auto* connection = find(attempt, fd);
  if (!connection) return;
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(attempt, fd);
  connection->unread.append(buffer.data(), static_cast<size_t>(got));
  take_lines_or_drop(attempt, *connection);
}

bool JobChannels::take_lines_or_drop(AttemptId attempt, Connection& connection) {
  take_lines(attempt, connection);
  if (connection.held_back || !begins_too_long(connection.unread)) return true;
  const int fd = connection.fd.get();
  send(fd, job_error_line(fmt::format("a line has more than {} bytes", kMaxJobLineBytes)));
  drop(attempt, fd);
  return false;
}

void JobChannels::take_lines(AttemptId attempt, Connection& connection) {
  size_t begin = 0;
  for (size_t end; (end = connection.unread.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    if (connection.lines >= most_lines(attempt)) {
      hold_back(attempt, connection);
      break;
    }
    const auto line = std::string_view(connection.unread).substr(begin, end - begin);
    if (line.size() > kMaxJobLineBytes) break;
    ++connection.lines;
    if (auto message = parse_job_line(line))
      take(attempt, std::move(*message));
    else
      send(connection.fd.get(), job_error_line(message.error().message));
  }
  connection.unread.erase(0, begin);
}

size_t JobChannels::most_lines(AttemptId attempt) const {
  return std::min(kMaxLinesPerPeriod,
                  kMostLinesPerPeriod / channels_.at(attempt).connections.size());
}

void JobChannels::take(AttemptId attempt, JobMessage message) {
  if (auto* progress = std::get_if<JobProgress>(&message)) {
    reports_.try_emplace(attempt, kMostReports)
        .first->second.add({attempt, clock_.wall_ms(), std::move(*progress), cpu_ns(attempt), 0, 0,
                            takes_checkpoints(attempt)});
    return;
  }
  channels_.at(attempt).takes_checkpoints = true;
  if (auto* taken = std::get_if<JobCheckpoint>(&message)) checkpoint(attempt, std::move(*taken));
}

void JobChannels::hold_back(AttemptId attempt, Connection& connection) {
  if (std::exchange(connection.held_back, true)) return;
  const int fd = connection.fd.get();
  loop_.unwatch(fd);
  loop_.detach(loop_.after_ms(kPeriodMs).then([weak = std::weak_ptr(self_), attempt, fd] {
    const auto self = weak.lock();
    auto* waiting = self ? (*self)->find(attempt, fd) : nullptr;
    if (!waiting || !waiting->held_back) return;  // another one of this number
    waiting->held_back = false;
    waiting->lines = 0;
    if ((*self)->take_lines_or_drop(attempt, *waiting) && !waiting->held_back)
      (*self)->watch(attempt, fd);
  }),
               "job channel");
}

void JobChannels::drop(AttemptId attempt, int fd) {
  loop_.unwatch(fd);
  channels_.at(attempt).connections.erase(fd);
}

void JobChannels::say(AttemptId attempt, const std::string& line) {
  const auto channel = channels_.find(attempt);
  if (channel == channels_.end()) return;
  for (const auto& [fd, connection] : channel->second.connections) send(fd, line);
}

void JobChannels::tell(AttemptId attempt, std::string Channel::*what, std::string line) {
  const auto channel = channels_.find(attempt);
  if (channel == channels_.end()) return;
  channel->second.*what = std::move(line);
  for (const auto& [fd, connection] : channel->second.connections) send(fd, channel->second.*what);
}

void JobChannels::stop(AttemptId attempt, const std::string& reason) {
  tell(attempt, &Channel::stopped, job_stop_line(reason));
}

void JobChannels::set_cores(AttemptId attempt, double cores) {
  tell(attempt, &Channel::cores, job_cores_line(cores));
}

void JobChannels::set_share(AttemptId attempt, uint32_t milli) {
  tell(attempt, &Channel::share, job_share_line(milli));
}

void JobChannels::ask_checkpoint(AttemptId attempt, const std::string& reason) {
  tell(attempt, &Channel::checkpoint_now, job_checkpoint_now_line(reason));
}

void JobChannels::checkpoint_saved(AttemptId attempt, const std::string& line) {
  const auto channel = channels_.find(attempt);
  if (channel != channels_.end()) channel->second.checkpoint_now.clear();
  say(attempt, line);
}

bool JobChannels::takes_checkpoints(AttemptId attempt) const {
  const auto channel = channels_.find(attempt);
  return channel != channels_.end() && channel->second.takes_checkpoints;
}

std::vector<JobReport> JobChannels::take_reports() {
  std::vector<JobReport> taken;
  for (auto& [attempt, series] : reports_)
    for (const auto& report : series.points()) taken.push_back(report);
  reports_.clear();
  return taken;
}

}  // namespace tierpilot::agent
