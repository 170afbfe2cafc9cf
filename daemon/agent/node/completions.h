// Promises for answers that other threads bring about. The fulfiller never leaves the loop's
// thread: the callback carries only a number, so it may be copied and destroyed anywhere.
#pragma once

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/result.h"
#include "rpc/error.h"

namespace tierpilot::agent {

// Owned by the event loop's thread, where its callbacks must be called.
template <class T>
class Completions {
 public:
  struct Pending {
    kj::Promise<T> promise;  // rejects with to_exception(error)
    std::function<void(Result<T>)> complete;
  };

  Pending add() {
    auto paf = kj::newPromiseAndFulfiller<T>();
    const uint64_t id = state_->next++;
    state_->waiting.emplace(id, kj::mv(paf.fulfiller));
    return {kj::mv(paf.promise), [weak = std::weak_ptr(state_), id](Result<T> result) {
              if (const auto state = weak.lock()) state->complete(id, std::move(result));
            }};
  }
  size_t size() const { return state_->waiting.size(); }

 private:
  struct State {
    std::map<uint64_t, kj::Own<kj::PromiseFulfiller<T>>> waiting;
    uint64_t next = 0;

    void complete(uint64_t id, Result<T> result) {
      auto node = waiting.extract(id);
      if (!node) return;
      if (!result)
        node.mapped()->reject(to_exception(result.error()));
      else if constexpr (std::is_void_v<T>)
        node.mapped()->fulfill();
      else
        node.mapped()->fulfill(std::move(*result));
    }
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace tierpilot::agent
