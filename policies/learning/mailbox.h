// Handing trained weights over to the thread that decides.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace tierpilot {

// From one training thread to whoever decides, one thread at a time; neither ever waits for the
// other: the trainer runs at low priority, and a lock that it holds while it is off the core would
// stop decisions.
template <class Weights>
class Mailbox {
 public:
  using Pointer = std::shared_ptr<const Weights>;

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  ~Mailbox() {
    delete fresh_.load();
    delete done_with_.load();
  }

  // Training thread. Also frees what the decision thread has done with.
  void put(Pointer weights) {
    delete done_with_.exchange(nullptr);
    delete fresh_.exchange(new Pointer(std::move(weights)));
  }

  // Decision thread: the newest weights, null before the first put(). Valid until the next call.
  const Weights* newest() {
    if (Pointer* fresh = fresh_.exchange(nullptr)) {
      // Not null only when put() was overtaken in its middle.
      delete done_with_.exchange(current_.release());
      current_.reset(fresh);
    }
    return current_ ? current_->get() : nullptr;
  }

 private:
  std::atomic<Pointer*> fresh_ = nullptr;
  std::atomic<Pointer*> done_with_ = nullptr;  // freeing weights may take longer than a decision
  std::unique_ptr<Pointer> current_;           // decision thread only
};

}  // namespace tierpilot
