// Messages from any thread to one thread, without a lock: a sender never waits for the receiver,
// even when the receiver is off the core at low priority.
#pragma once

#include <semaphore.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace tierpilot {

template <class Message>
class Inbox {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Inbox() { ::sem_init(&filled_, 0, 0); }
  Inbox(const Inbox&) = delete;
  ~Inbox() {
    take_all();
    ::sem_destroy(&filled_);
  }

  void push(Message message) {
    ++size_;
    auto* const node = new Node{std::move(message), nullptr};
    Node* older = newest_.load();
    do {
      node->older = older;
    } while (!newest_.compare_exchange_weak(older, node));
    // The receiver may have freed the node by now.
    if (older == nullptr) ::sem_post(&filled_);
  }

  // Receiver only, oldest first.
  std::vector<Message> take_all() {
    std::vector<Message> messages;
    for (std::unique_ptr<Node> node(newest_.exchange(nullptr)); node; node.reset(node->older))
      messages.push_back(std::move(node->message));
    std::reverse(messages.begin(), messages.end());
    size_ -= messages.size();
    return messages;
  }

  // Messages that were not taken yet.
  size_t size() const { return size_; }

  // Receiver only. May return early, with nothing there.
  void wait() { (void)::sem_wait(&filled_); }
  void wait_until(Deadline deadline) {
    const auto ns = std::chrono::nanoseconds(deadline.time_since_epoch()).count();
    const timespec until{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    (void)::sem_clockwait(&filled_, CLOCK_MONOTONIC, &until);
  }

 private:
  struct Node {
    Message message;
    Node* older;
  };
  std::atomic<Node*> newest_ = nullptr;
  std::atomic<size_t> size_ = 0;
  // std::counting_semaphore's timed wait polls in libstdc++ 12, with sleeps of many milliseconds.
  sem_t filled_;
};

}  // namespace tierpilot
