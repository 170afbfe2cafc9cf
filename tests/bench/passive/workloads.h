// Programs that do little else than what the probe watches. Seconds are of CPU time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"

namespace tierpilot {

// Faults a second: fresh small pages are written to, over and over, for `seconds`.
double fault_pages(double seconds);

// Small pages that are sent to and fro between two nodes.
class Shuttle {
 public:
  // kUnavailable on a machine with one node.
  static Result<std::unique_ptr<Shuttle>> make();
  ~Shuttle();

  // Pages a second for `seconds`, `batch` of them in a call of move_pages.
  double move_pages(double seconds, size_t batch);

 private:
  explicit Shuttle(std::vector<int> nodes);
  bool move_all(int node, size_t batch);

  std::vector<int> nodes_;
  char* memory_;
  std::vector<void*> pages_;
};

}  // namespace tierpilot
