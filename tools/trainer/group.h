// The ranks of a job that sum vectors together, by c10d's gloo over a TCP store at rank 0.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "base/result.h"
#include "tools/trainer/place.h"

namespace tierpilot::trainer {

class Group {
 public:
  // Waits for all ranks. kUnreachable: they have not come within `patience`.
  static Result<Group> meet(const Place& place, std::chrono::seconds patience);
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;
  ~Group();

  const Place& place() const { return place_; }
  // Each value becomes the sum over all ranks, with the same bits on each of them; alone nothing
  // changes. Waits for the others. kUnreachable: one of them has ended.
  Status sum(std::span<float> values);

 private:
  struct Impl;
  explicit Group(Place place);

  Place place_;
  std::unique_ptr<Impl> impl_;  // none: alone
};

}  // namespace tierpilot::trainer
