// The daemon's end of the wire to its warden, and what tells that the warden and all supervisors
// are gone. Not thread-safe.
#pragma once

#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <optional>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/exec/message_socket.h"
#include "daemon/exec/process.h"

namespace tierpilot {

class WardenLink {
 public:
  // `lifeline`: end of file when neither warden nor supervisors are left. `events`: an epoll that
  // has both.
  WardenLink(MessageSocket channel, UniqueFd lifeline, UniqueFd events, pid_t warden)
      : channel_(std::move(channel)),
        lifeline_(std::move(lifeline)),
        events_(std::move(events)),
        warden_(warden) {}
  // The warden ends its tasks then: returns when none is left (or, logged, after 15 s).
  ~WardenLink() {
    channel_.close();
    const bool gone = !lifeline_ || wait_readable(lifeline_.get(), kEndPatienceMs);
    if (!gone) spdlog::error("executor: processes of tasks are stuck in the kernel, leaving them");
    ::waitpid(warden_, nullptr, gone ? 0 : WNOHANG);
  }
  WardenLink(const WardenLink&) = delete;
  WardenLink& operator=(const WardenLink&) = delete;

  pid_t warden() const { return warden_; }
  // False: it is dead or dying, as receive() has found.
  bool alive() const { return channel_.fd() >= 0; }
  // Readable when there is something to read or to flush, or when all are gone.
  int event_fd() const { return events_.get(); }

  // As MessageSocket's, and kUnavailable once it is not alive.
  Status send(const ExecMessage& message, bool urgent) {
    if (!alive())
      return fail(ErrorCode::kUnavailable,
                  "the warden process is dead: the daemon must be restarted");
    auto status = channel_.send(message, urgent);
    watch_backlog();
    return status;
  }
  // A failure shows again, and for good, when what the warden sent has been read.
  void flush() { (void)channel_.flush(); }
  // As MessageSocket's: kUnreachable once, and from then on it is not alive.
  Result<std::optional<ExecMessage>> receive(UniqueFd& attached) {
    auto message = channel_.receive(&attached);
    // Closing also takes the socket out of the epoll set; the lifeline stays in it.
    if (!message && message.error().code == ErrorCode::kUnreachable) channel_.close();
    return message;
  }
  // After flush() and receive(): what event_fd() has to wait for.
  void watch_backlog() {
    const uint32_t wanted = channel_.backlog() ? EPOLLIN | EPOLLOUT : EPOLLIN;
    epoll_event event{.events = wanted, .data = {.fd = channel_.fd()}};
    ::epoll_ctl(events_.get(), EPOLL_CTL_MOD, channel_.fd(), &event);
  }
  // Whether neither warden nor supervisor, and so no process of a task, is left; true once.
  bool take_end() {
    if (!lifeline_ || !wait_readable(lifeline_.get(), 0)) return false;
    lifeline_.reset();
    return true;
  }

 private:
  static constexpr int kEndPatienceMs = 15'000;

  MessageSocket channel_;
  UniqueFd lifeline_;
  UniqueFd events_;
  pid_t warden_;
};

}  // namespace tierpilot
