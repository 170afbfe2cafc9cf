// Where a worker thread waits for an answer that the event loop brings.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"

namespace tierpilot::agent {

class AnyMailbox {
 public:
  virtual ~AnyMailbox() = default;
  // The answer, unless there is one.
  virtual void fail_with(const Error& error) = 0;
};

template <class T>
class Mailbox : public AnyMailbox {
 public:
  // `make` makes the answer; it is not called when there is one or nobody waits for it any more.
  template <class Make>
  void put(const Make& make) {
    std::lock_guard lock(mutex_);
    if (abandoned_ || answer_) return;
    answer_ = make();
    arrived_.notify_one();
  }
  void fail_with(const Error& error) override {
    put([&] { return Result<T>(tl::unexpected(error)); });
  }

  // Whether an answer would still be taken.
  bool waits() {
    std::lock_guard lock(mutex_);
    return !abandoned_ && !answer_;
  }

  // None: nothing came for `limit_ms`, or before `cancel` was raised. What comes later is not
  // taken.
  std::optional<Result<T>> take(int64_t limit_ms, const std::atomic<bool>& cancel) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
    std::unique_lock lock(mutex_);
    while (!answer_ && !cancel && std::chrono::steady_clock::now() < end)
      arrived_.wait_until(lock, std::min(end, std::chrono::steady_clock::now() + kLook));
    abandoned_ = true;
    return std::move(answer_);
  }

 private:
  static constexpr std::chrono::milliseconds kLook{50};  // between two looks at `cancel`

  std::mutex mutex_;
  std::condition_variable arrived_;
  bool abandoned_ = false;
  std::optional<Result<T>> answer_;
};

}  // namespace tierpilot::agent
