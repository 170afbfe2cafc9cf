// A rank whose forward passes save within a memory budget. libtierpilot-swap-torch is behind it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"

namespace tierpilot::trainer {

class SwapBudget {
 public:
  // "4GiB", of the process's private memory; for what this thread saves from now on. Empty: no
  // bound. `recompute`: a model's blocks may be computed again instead.
  static Result<SwapBudget> of(const std::string& size, bool recompute);
  SwapBudget(SwapBudget&&) noexcept;
  // On the same thread.
  ~SwapBudget();

  // What Tierpilot shows of it; nothing where there is no bound.
  std::map<std::string, double> measures() const;
  // All counts, as a JSON object; "null" where there is no bound.
  std::string statistics() const;

 private:
  struct Impl;
  explicit SwapBudget(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;  // none: no bound
};

}  // namespace tierpilot::trainer
