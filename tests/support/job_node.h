// The daemon's own end of the job channel, for tests of jobs.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "daemon/agent/job_channel/job_channels.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {

class JobNode {
 public:
  static constexpr AttemptId kJob{7, 2};

  JobNode() {
    const auto path = channels_.open(kJob, folder());
    if (!path) throw std::runtime_error(path.error().message);
    path_ = *path;
  }

  JobChannels& channels() { return channels_; }
  const std::filesystem::path& socket() const { return path_; }
  std::filesystem::path folder() const { return folder_.path(); }

  // The node does its part for a while.
  void pass(int64_t ms = 20) {
    loop_.detach(loop_.after_ms(ms).then([this] { loop_.stop(); }), "test");
    loop_.run();
  }
  // While the job, on a thread of its own, does this.
  void beside(const std::function<void()>& job) {
    std::atomic<bool> done = false;
    std::thread thread([&] {
      job();
      done = true;
    });
    for (int i = 0; i < 1000 && !done; ++i) pass(10);
    thread.join();
  }

 private:
  ScratchDirectory folder_;
  EventLoop loop_;
  ManualClock clock_;
  JobChannels channels_{loop_, clock_};
  std::filesystem::path path_;
};

}  // namespace tierpilot::agent
