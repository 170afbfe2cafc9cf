// Programs that do little else than what the probe watches, for some seconds by a clock.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <vector>

#include "base/result.h"

namespace tierpilot {

double seconds_by(clockid_t clock);

// How many faults: fresh small pages are written to, over and over.
double fault_pages(clockid_t clock, double seconds);

// Small pages that are sent to and fro between two nodes.
class Shuttle {
 public:
  // kUnavailable on a machine with one node.
  static Result<std::unique_ptr<Shuttle>> make();
  ~Shuttle();

  // How many pages, `batch` of them in a call of move_pages; below zero when the kernel refused.
  double move_pages(clockid_t clock, double seconds, size_t batch);

 private:
  explicit Shuttle(std::vector<int> nodes);
  bool move_all(int node, size_t batch);

  std::vector<int> nodes_;
  size_t at_ = 0;  // which of them has the pages
  char* memory_;
  std::vector<void*> pages_;
};

}  // namespace tierpilot
