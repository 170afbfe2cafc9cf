#include "daemon/agent/tasks/chores.h"

#include <exception>
#include <system_error>

#include "base/log.h"

namespace tierpilot::agent {

Chores::~Chores() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Chores::ask() noexcept {
  {
    const std::lock_guard lock(mutex_);
    asked_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    spdlog::warn("no thread for what waits to be removed or measured: {}", error.what());
  }
}

void Chores::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    wake_.wait(lock, [this] { return ending_ || asked_; });
    asked_ = false;
    lock.unlock();
    try {
      work_(ending_);
    } catch (const std::exception& error) {
      spdlog::warn("removing and measuring: {}", error.what());
    }
    lock.lock();
  }
}

}  // namespace tierpilot::agent
