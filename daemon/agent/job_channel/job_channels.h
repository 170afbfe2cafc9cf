// The job channels of all attempts on this node: a Unix socket in each one's directory, through
// which it says how far it is and is told to stop. What comes is hostile: lines, connections and
// their rate are bounded, and a job that says too much has to wait until it is read.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thinned_series.h"
#include "base/unique_fd.h"
#include "daemon/agent/job_channel/job_message.h"
#include "rpc/event_loop.h"
#include "rpc/log_limiter.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class JobChannels {
 public:
  static constexpr size_t kMaxConnections = 32;       // of an attempt: one of each of its processes
  static constexpr size_t kMaxLinesPerPeriod = 50;    // of a connection
  static constexpr size_t kMostLinesPerPeriod = 200;  // of an attempt, where it has many
  static constexpr size_t kMaxAcceptsPerPeriod = 8;
  static constexpr int64_t kPeriodMs = 250;
  static constexpr size_t kMostReports = 16;
  static constexpr const char* kSocketName = "job.sock";

  JobChannels(EventLoop& loop, const Clock& clock);
  ~JobChannels();

  // Listens in the attempt's directory, to this process's user and, where the attempt has one of
  // its own, to that; gives the socket's path. kInvalid: it is too long for one.
  Result<std::filesystem::path> open(AttemptId attempt, const std::filesystem::path& directory,
                                     std::optional<uid_t> user = {});
  // What it has said is kept until it is taken.
  void close(AttemptId attempt);
  void stop(AttemptId attempt, const std::string& reason);
  // How many cores it may use from now on.
  void set_cores(AttemptId attempt, double cores);
  // How many thousandths of its GPU it may use from now on.
  void set_share(AttemptId attempt, uint32_t milli);
  // Asks for a checkpoint, also those that connect before one is saved.
  void ask_checkpoint(AttemptId attempt, const std::string& reason);
  void checkpoint_saved(AttemptId attempt, const std::string& line);
  // What the job is told once, if it is there to hear it.
  void say(AttemptId attempt, const std::string& line);
  // What becomes of a checkpoint is said later.
  std::function<void(AttemptId, JobCheckpoint)> checkpoint = [](AttemptId, const JobCheckpoint&) {};
  // Asked when a report comes in: the CPU time of the attempt until now.
  std::function<uint64_t(AttemptId)> cpu_ns = [](AttemptId) { return 0; };

  // Whether it said so, or took one, since the channel was opened.
  bool takes_checkpoints(AttemptId attempt) const;

  // What was said since the last time: of each attempt at most kMostReports, evenly thinned and the
  // newest among them, oldest first.
  std::vector<JobReport> take_reports();

 private:
  struct Connection {
    UniqueFd fd;
    std::string unread;  // the begin of a line
    size_t lines = 0;    // since it was last held back
    bool held_back = false;
  };
  struct Channel {
    UniqueFd listener;
    size_t accepted = 0;  // since it last rested
    std::optional<uid_t> user;
    std::map<int, Connection> connections;  // by descriptor
    // The lines that said so, for those that connect later.
    std::string stopped, cores, share, checkpoint_now;
    bool takes_checkpoints = false;
  };

  void listen(AttemptId attempt);
  void accept(AttemptId attempt);
  void accept_failed(AttemptId attempt, int error);
  // Those that connect wait so long.
  void rest(AttemptId attempt, int64_t ms);
  void read(AttemptId attempt, int fd);
  void take_lines(AttemptId attempt, Connection& connection);
  // False: its line was too long, and it is gone.
  bool take_lines_or_drop(AttemptId attempt, Connection& connection);
  // Reads on in the next period.
  void hold_back(AttemptId attempt, Connection& connection);
  void watch(AttemptId attempt, int fd);
  void drop(AttemptId attempt, int fd);
  void take(AttemptId attempt, JobMessage message);
  void tell(AttemptId attempt, std::string Channel::*what, std::string line);
  Connection* find(AttemptId attempt, int fd);
  size_t most_lines(AttemptId attempt) const;

  EventLoop& loop_;
  const Clock& clock_;
  std::map<AttemptId, Channel> channels_;
  std::map<AttemptId, ThinnedSeries<JobReport>> reports_;
  LogLimiter limiter_;
  // Timers that outlive it find it gone.
  std::shared_ptr<JobChannels*> self_;
};

}  // namespace tierpilot::agent
