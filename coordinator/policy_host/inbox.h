// Messages from any thread to one thread, without a lock: a sender never waits for the receiver,
// even when the receiver is off the core at low priority.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <semaphore>
#include <utility>
#include <vector>

namespace tierpilot {

template <class Message>
class Inbox {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Inbox() = default;
  Inbox(const Inbox&) = delete;
  ~Inbox() { take_all(); }

  void push(Message message) {
    auto node = std::make_unique<Node>(Node{std::move(message), newest_.load()});
    while (!newest_.compare_exchange_weak(node->older, node.get())) {
    }
    const bool was_empty = node.release()->older == nullptr;
    if (was_empty) filled_.release();
  }

  // Receiver only, oldest first.
  std::vector<Message> take_all() {
    std::vector<Message> messages;
    for (std::unique_ptr<Node> node(newest_.exchange(nullptr)); node; node.reset(node->older))
      messages.push_back(std::move(node->message));
    std::reverse(messages.begin(), messages.end());
    return messages;
  }

  // Receiver only. May return early, with nothing there.
  void wait() { filled_.acquire(); }
  void wait_until(Deadline deadline) { (void)filled_.try_acquire_until(deadline); }

 private:
  struct Node {
    Message message;
    Node* older;
  };
  std::atomic<Node*> newest_ = nullptr;
  std::counting_semaphore<> filled_{0};
};

}  // namespace tierpilot
