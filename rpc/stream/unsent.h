// How many bytes were said and not yet taken by the kernel: on a connection, or on all of a server.
// On the loop's thread; may outlive the connection.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace tierpilot {

class Unsent {
 public:
  Unsent() = default;
  ~Unsent() { set(0); }
  Unsent(const Unsent&) = delete;

  size_t bytes() const { return bytes_; }
  void set(size_t bytes) {
    const size_t before = std::exchange(bytes_, bytes);
    if (all_ && bytes != before) all_->set(all_->bytes_ + bytes - before);
    if (bytes < before && on_less_) on_less_();
  }
  // From now on `all` has these too.
  void count_in(std::shared_ptr<Unsent> all) {
    all_ = std::move(all);
    all_->set(all_->bytes_ + bytes_);
  }
  // Called whenever they have become fewer. It must not write or end a connection.
  void on_less(std::function<void()> told) { on_less_ = std::move(told); }

 private:
  size_t bytes_ = 0;
  std::shared_ptr<Unsent> all_;
  std::function<void()> on_less_;
};

}  // namespace tierpilot
