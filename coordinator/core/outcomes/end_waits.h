// Who waits for the ends of tasks. A wait goes with the call that asked: what outlived it would
// grow with what clients send. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace tierpilot {

class EndWaits {
  using Key = std::pair<uint64_t, uint64_t>;  // task, number of the wait
  using Waiting = std::map<Key, std::function<void()>>;

 public:
  // Ends the wait when it goes, also after the EndWaits.
  class Wait {
   public:
    Wait(std::weak_ptr<Waiting> waiting, Key key) : waiting_(std::move(waiting)), key_(key) {}
    Wait(Wait&&) = default;
    Wait& operator=(Wait&&) = delete;
    ~Wait() {
      if (const auto waiting = waiting_.lock()) waiting->erase(key_);
    }

   private:
    std::weak_ptr<Waiting> waiting_;
    Key key_;
  };

  // `ended` is called once, unless the wait goes before.
  [[nodiscard]] Wait add(uint64_t task, std::function<void()> ended) {
    const Key key{task, ++last_};
    waiting_->emplace(key, std::move(ended));
    return {waiting_, key};
  }
  void ended(uint64_t task) {
    for (auto it = waiting_->lower_bound({task, 0});
         it != waiting_->end() && it->first.first == task; it = waiting_->lower_bound({task, 0})) {
      const auto call = std::move(waiting_->extract(it).mapped());
      call();
    }
  }
  size_t size() const { return waiting_->size(); }

 private:
  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  uint64_t last_ = 0;
};

}  // namespace tierpilot
