// Bytes that need not leave at once, such as a note that an answer has arrived, wait a little for
// others of their stream to leave with: a system call less here and a wake-up less at the peer. One
// timer serves all streams of a loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tierpilot {

// A service of the io_context: boost::asio::use_service<LateWrites>(context). Its thread only.
class LateWrites final : public boost::asio::execution_context::service {
 public:
  using key_type = LateWrites;
  static inline boost::asio::execution_context::id id;
  static constexpr std::chrono::milliseconds kPatience{5};

  explicit LateWrites(boost::asio::execution_context& context)
      : service(context), timer_(std::in_place, static_cast<boost::asio::io_context&>(context)) {}

  // Calls `flush` within kPatience.
  void add(std::function<void()> flush) {
    waiting_.push_back(std::move(flush));
    if (waiting_.size() > 1) return;
    timer_->expires_after(kPatience);
    timer_->async_wait([this](boost::system::error_code error) {
      if (error) return;
      for (const auto& each : std::exchange(waiting_, {})) each();
    });
  }

 private:
  void shutdown() override {
    timer_.reset();
    waiting_.clear();
  }

  std::optional<boost::asio::steady_timer> timer_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace tierpilot
