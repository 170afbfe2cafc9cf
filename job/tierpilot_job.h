// What a training job in C++ says to the Tierpilot node that runs it, and is told by it: the same
// as the Python module tierpilot. Header only; C++17 and nlohmann/json (nlohmann-json3-dev).
//
//   auto& job = tierpilot::Job::of_process();
//   if (!job.restored().empty()) load(job.restored());
//   for (uint64_t step = job.restored_iteration() + 1; step <= steps; ++step) {
//     ...
//     job.report({step, steps, samples, loss});
//     if (job.should_checkpoint()) {
//       save("state.pt");
//       job.checkpoint("state.pt", step);
//     }
//     if (job.should_stop()) break;
//   }
//
// Where no Tierpilot runs the program, all of this does nothing. Only checkpoint() waits for the
// node, and nothing throws because of it: a report that cannot be sent at once is dropped. As all
// that allocates or locks, it is not for handlers of signals: these set a flag.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace tierpilot {

namespace job_detail {

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

inline uint64_t number(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// JSON has no word for infinity and for what is no number.
inline nlohmann::json figure(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

inline std::string line_of(const nlohmann::json& message) {
  return message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

// Lines to and from the node's socket, none of which waits. Where nobody is there or the other end
// has gone, all of it does nothing. Not thread-safe.
class NodeLines {
 public:
  // `path`: of the socket; empty: nobody is there.
  explicit NodeLines(const std::string& path) {
    if (!path.empty()) connect(path);
  }
  ~NodeLines() { close(); }
  NodeLines(const NodeLines&) = delete;
  NodeLines& operator=(const NodeLines&) = delete;

  bool connected() const { return socket_ >= 0; }

  // Sends the line, or a part of it with the rest to follow; false: nothing was sent, or nobody is
  // there.
  bool offer(const std::string& line) {
    // A line that was sent in part must be sent to its end before another one.
    if (!unsent_.empty() && !push()) return false;
    unsent_ = line;
    push();
    if (socket_ < 0) return false;
    if (unsent_.size() < line.size()) return true;
    unsent_.clear();  // not a byte of it went: it may be dropped
    return false;
  }
  // To be sent by push(), after what is still unsent.
  void add(const std::string& line) { unsent_ += line; }
  // Sends what is left, as far as that goes at once; true when nothing is.
  bool push() {
    while (socket_ >= 0 && !unsent_.empty()) {
      const auto sent =
          ::send(socket_, unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno != EAGAIN) close();
      if (sent < 0) break;
      unsent_.erase(0, static_cast<size_t>(sent));
    }
    return socket_ >= 0 && unsent_.empty();
  }

  // Calls `told` with every line that has come.
  template <class Told>
  void receive(const Told& told) {
    char buffer[4096];
    while (socket_ >= 0) {
      const auto got = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return close();
      unread_.append(buffer, static_cast<size_t>(got));
      size_t begin = 0;
      for (size_t end; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1)
        told(unread_.substr(begin, end - begin));
      unread_.erase(0, begin);
      if (unread_.size() > kMostUnread) close();
    }
  }

  // For poll(): until receive() or push() has something to do.
  pollfd awaited() const {
    return {socket_, static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
  }

 private:
  static constexpr size_t kMostUnread = 1 << 16;

  void connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return;
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::fcntl(socket_, F_SETFL, O_NONBLOCK) != 0)
      close();
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  int socket_ = -1;
  std::string unread_, unsent_;
};

}  // namespace job_detail

struct JobReportOf {
  uint64_t iteration = 0;
  uint64_t iterations = 0;  // of how many; 0: not said
  uint64_t samples = 0;     // seen so far
  std::optional<double> loss{};
  std::map<std::string, double> measures{};
};

// One process of a job. Its methods may be called from any thread.
class Job {
 public:
  using Clock = std::chrono::steady_clock;

  // The process's own, from its environment, connected at the first call. Not after a fork.
  static Job& of_process() {
    static Job job(job_detail::variable("TIERPILOT_JOB_SOCKET"));
    return job;
  }
  // `path`: of the node's socket; empty: nobody is there.
  explicit Job(const std::string& path)
      : node_(path),
        rank_(job_detail::number("RANK", 0)),
        restored_(job_detail::variable("TIERPILOT_CHECKPOINT")),
        restored_iteration_(job_detail::number("TIERPILOT_CHECKPOINT_ITERATION", 0)),
        local_ranks_(
            static_cast<double>(std::max<uint64_t>(4, job_detail::number("LOCAL_WORLD_SIZE", 1)))) {
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool connected() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return node_.connected();
  }
  uint64_t rank() const { return rank_; }
  // The file that an earlier try saved, and the iteration that it was saved with; empty: it begins
  // anew.
  const std::string& restored() const { return restored_; }
  uint64_t restored_iteration() const { return restored_iteration_; }

  // False: it was not sent, as nobody listens or reads, or more come than a node reads, a hundred
  // in a second. The last iteration is sent in any case, once.
  bool report(const JobReportOf& report) {
    using job_detail::figure;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      const bool is_last = report.iterations > 0 && report.iteration >= report.iterations;
      if (!in_time(is_last && !told_last_)) return false;
      told_last_ = is_last;
    }
    nlohmann::json message{{"v", 1}, {"type", "progress"}, {"iteration", report.iteration}};
    if (report.iterations > 0) message["iterations"] = report.iterations;
    if (report.samples > 0) message["samples"] = report.samples;
    if (report.loss) message["loss"] = figure(*report.loss);
    for (const auto& [name, value] : report.measures) message["measures"][name] = figure(value);
    std::lock_guard<std::mutex> guard(mutex_);
    receive();
    return node_.offer(job_detail::line_of(message));
  }

  // Why it is asked to end, once it is. It is killed a while later.
  std::optional<std::string> should_stop() {
    std::lock_guard<std::mutex> guard(mutex_);
    receive();
    return stop_;
  }

  // How many cores it may use now, where that changes while it runs.
  std::optional<double> cores() {
    std::lock_guard<std::mutex> guard(mutex_);
    receive();
    return cores_;
  }

  // How many thousandths of its GPU it may use now, where it shares one.
  std::optional<double> share() {
    std::lock_guard<std::mutex> guard(mutex_);
    receive();
    return share_;
  }

  // Whether to save now: when that was asked for, or when it is time. Where one is not kept, it is
  // time again after a second, then two, four, up to the interval. Only rank 0 saves.
  bool should_checkpoint() {
    std::lock_guard<std::mutex> guard(mutex_);
    receive();
    if (!node_.connected() || rank_ != 0) return false;
    if (!takes_checkpoints_told_)
      takes_checkpoints_told_ =
          node_.offer(job_detail::line_of({{"v", 1}, {"type", "takes_checkpoints"}}));
    const auto now = Clock::now();
    const bool asked = requests_met_ != checkpoint_requests_;
    if (!asked && now - last_checkpoint_ < checkpoint_every_) return false;
    if (now < retry_at_) return false;
    saving_since_ = now;
    return true;
  }

  // Keeps a file of the job's folder: what begins after a failure finds it in restored(). Waits
  // until the node has it, and before for its turn, where another thread's is under way; iterations
  // must rise. False: it was not kept, and checkpoint_error() says why.
  bool checkpoint(const std::string& path, uint64_t iteration,
                  std::chrono::milliseconds timeout = std::chrono::minutes(10)) {
    if (rank_ != 0) return false;
    const auto written = Clock::now();
    std::unique_lock<std::mutex> guard(mutex_);
    const auto requests = checkpoint_requests_;  // later ones want another
    guard.unlock();
    std::unique_lock<std::mutex> turn(saving_, std::try_to_lock);
    if (!turn) {
      turn.lock();
      std::this_thread::sleep_for(kLeastGap);
    }
    guard.lock();
    receive();
    const auto begin = Clock::now();
    const auto saving = saving_since_.value_or(written);
    node_.add(
        job_detail::line_of({{"v", 1},
                             {"type", "checkpoint"},
                             {"path", path},
                             {"iteration", iteration},
                             {"saving_ms", std::chrono::duration_cast<std::chrono::milliseconds>(
                                               std::max(written - saving, Clock::duration(0)))
                                               .count()}}));
    awaited_ = iteration;
    answer_.reset();
    while (node_.connected() && !answer_ && Clock::now() < begin + timeout) {
      node_.push();
      receive();
      if (node_.connected() && !answer_) wait(guard, begin + timeout - Clock::now());
    }
    saving_since_.reset();
    checkpoint_error_ = answer_.value_or("the node did not answer");
    awaited_.reset();
    const bool kept = checkpoint_error_.empty();
    if (kept) {
      last_checkpoint_ = Clock::now();
      requests_met_ = std::max(requests_met_, requests);
    }
    pause(kept ? Clock::duration(0) : std::max(2 * retry_pause_, kFirstRetryPause));
    return kept;
  }

  // Why the last one was not kept; empty: it was.
  std::string checkpoint_error() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return checkpoint_error_;
  }
  // The last iteration that outlives its node.
  std::optional<uint64_t> checkpoint_safe() {
    std::lock_guard<std::mutex> guard(mutex_);
    receive();
    return checkpoint_safe_;
  }

 private:
  // Of reports of all local ranks half of what a node reads: more would wait, and tell later what
  // was earlier.
  bool in_time(bool is_last) {
    constexpr double kMostAtOnce = 160, kMostASecond = 400;
    const auto now = Clock::now();
    const std::chrono::duration<double> passed = now - std::exchange(may_report_since_, now);
    may_report_ = std::min(std::max(1.0, kMostAtOnce / local_ranks_),
                           may_report_ + passed.count() * kMostASecond / local_ranks_);
    if (may_report_ < 1 && !is_last) return false;
    may_report_ = std::max(0.0, may_report_ - 1);
    return true;
  }

  // Hears what the node has said.
  void receive() {
    node_.receive([this](const std::string& line) { told(line); });
  }

  // Unknown types are of later versions; what is no message is left out.
  void told(const std::string& line) {
    const auto message = nlohmann::json::parse(line, nullptr, false);
    if (!message.is_object()) return;
    const auto text = [&](const char* key) {
      const auto found = message.find(key);
      return found != message.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const auto count = [&](const char* key) -> std::optional<uint64_t> {
      const auto found = message.find(key);
      if (found == message.end() || !found->is_number_unsigned()) return std::nullopt;
      return found->get<uint64_t>();
    };
    const auto positive = [&](const char* key) -> std::optional<double> {
      const auto found = message.find(key);
      if (found == message.end() || !found->is_number()) return std::nullopt;
      const double value = found->get<double>();
      return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
    };
    const auto type = text("type");
    if (type == "stop") {
      stop_ = text("reason").empty() ? "asked to end" : text("reason");
    } else if (type == "cores") {
      if (const auto cores = positive("cores")) cores_ = cores;
    } else if (type == "share") {
      if (const auto milli = positive("milli")) share_ = milli;
    } else if (type == "checkpoint_now") {
      ++checkpoint_requests_;
      pause(Clock::duration(0));
    } else if (type == "checkpoint_every") {
      constexpr double kLongest_s = 1e9;
      if (const auto seconds = positive("seconds"))
        checkpoint_every_ = std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(std::min(*seconds, kLongest_s)));
    } else if (type == "checkpoint_safe") {
      if (const auto iteration = count("iteration")) checkpoint_safe_ = iteration;
    } else if (type == "checkpoint_saved" || type == "checkpoint_failed") {
      const auto failed = text("what").empty() ? "it was not kept" : text("what");
      if (awaited_ && count("iteration") == awaited_)
        answer_ = type == "checkpoint_saved" ? "" : failed;
    }
  }

  // Before the next try.
  void pause(Clock::duration pause) {
    retry_pause_ = std::min(pause, checkpoint_every_);
    retry_at_ = Clock::now() + retry_pause_;
  }

  // Others go on meanwhile; as they may read the answer, it is looked for now and then.
  void wait(std::unique_lock<std::mutex>& guard, Clock::duration left) const {
    using std::chrono::milliseconds;
    auto end = node_.awaited();
    guard.unlock();
    const auto most = std::chrono::duration_cast<milliseconds>(left) + milliseconds(1);
    ::poll(&end, 1, static_cast<int>(std::clamp(most, milliseconds(1), kLookEvery).count()));
    guard.lock();
  }

  static constexpr std::chrono::milliseconds kLookEvery{50};
  static constexpr Clock::duration kFirstRetryPause = std::chrono::seconds(1);
  // Within a tenth of a second of the last one the node takes none.
  static constexpr std::chrono::milliseconds kLeastGap{110};

  std::mutex saving_;         // for all of a checkpoint; taken first
  mutable std::mutex mutex_;  // for a moment
  job_detail::NodeLines node_;
  const uint64_t rank_;
  const std::string restored_;
  const uint64_t restored_iteration_;
  std::optional<std::string> stop_;
  std::optional<double> cores_, share_;
  bool takes_checkpoints_told_ = false;
  uint64_t checkpoint_requests_ = 0, requests_met_ = 0;
  const double local_ranks_;  // or four, where they are fewer
  double may_report_ = 0;     // so many more now
  Clock::time_point may_report_since_{};
  bool told_last_ = false;
  Clock::duration checkpoint_every_ = std::chrono::minutes(1);  // until the node has said
  Clock::time_point last_checkpoint_ = Clock::now();            // that was kept
  Clock::time_point retry_at_{};
  Clock::duration retry_pause_{};
  std::optional<Clock::time_point> saving_since_;  // as should_checkpoint() said so
  std::string checkpoint_error_;
  std::optional<uint64_t> checkpoint_safe_;
  std::optional<uint64_t> awaited_;    // the iteration of the checkpoint under way
  std::optional<std::string> answer_;  // why that failed; empty: it was kept
};

}  // namespace tierpilot
