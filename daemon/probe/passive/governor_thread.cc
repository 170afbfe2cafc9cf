#include "daemon/probe/passive/governor_thread.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "base/log.h"

namespace tierpilot {
namespace {

int64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Signals are for the threads that expect them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

GovernorThread::GovernorThread(GovernedPrograms& programs, const CostGovernor::Options& options)
    : programs_(programs),
      governor_(options, clock_.boot_ns()),
      start_ns_(clock_.boot_ns()),
      since_ns_(start_ns_) {
  const SignalsBlocked inherited;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

double GovernorThread::attached_share() const {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_.boot_ns();
  const int64_t attached_ns = attached_ns_ + (attached_ ? now_ns - since_ns_ : 0);
  return now_ns > start_ns_
             ? static_cast<double>(attached_ns) / static_cast<double>(now_ns - start_ns_)
             : 1;
}

void GovernorThread::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto decision = governor_.decide(clock_.boot_ns(), programs_.calls());
    switch (decision.step) {
      case CostGovernor::Step::kStay:
        wait(stop, decision.wait_ns);
        break;
      case CostGovernor::Step::kAttach:
        attach();
        break;
      case CostGovernor::Step::kDetach:
        detach();
        break;
    }
  }
}

void GovernorThread::wait(const std::stop_token& stop, int64_t ns) {
  std::unique_lock lock(mutex_);
  stopping_.wait_for(lock, stop, std::chrono::nanoseconds(ns), [] { return false; });
}

void GovernorThread::attach() {
  const int64_t start_ns = thread_cpu_ns();
  if (const auto status = programs_.attach(); !status) {
    if (!std::exchange(refused_, true))
      spdlog::warn("passive probe: attaching again, and will be tried until it works: {}",
                   status.error().message);
    governor_.attach_failed();
    return;
  }
  refused_ = false;
  governor_.toggled(true, clock_.boot_ns(), thread_cpu_ns() - start_ns);
  note(true);
}

void GovernorThread::detach() {
  note(false);
  const int64_t start_ns = thread_cpu_ns();
  programs_.detach();
  governor_.toggled(false, clock_.boot_ns(), thread_cpu_ns() - start_ns);
}

void GovernorThread::note(bool attached) {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_.boot_ns();
  if (attached_) attached_ns_ += now_ns - since_ns_;
  attached_ = attached;
  since_ns_ = now_ns;
}

}  // namespace tierpilot
