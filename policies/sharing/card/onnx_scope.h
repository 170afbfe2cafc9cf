// What names mean in a graph, and in the bodies of its operators.
#pragma once

#include <string>
#include <unordered_map>

namespace tierpilot::sharing {

// A graph's own names, and behind them those of the graph that its operator is in: that one has to
// live on, and is not copied, as bodies may be many.
template <class T>
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  const T* find(const std::string& name) const {
    for (const auto* scope = this; scope; scope = scope->outer_)
      if (const auto found = scope->own_.find(name); found != scope->own_.end())
        return &found->second;
    return nullptr;
  }
  void put(const std::string& name, T meaning) { own_[name] = std::move(meaning); }
  const std::unordered_map<std::string, T>& own() const { return own_; }

 private:
  const Scope* outer_;
  std::unordered_map<std::string, T> own_;
};

}  // namespace tierpilot::sharing
