// The losses that a job has reported, bounded however many they are: the newest stand as they came,
// older ones as means of ever more of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/quality/loss_point.h"

namespace tierpilot::quality {

class LossHistory {
 public:
  struct Block {
    double iteration = 0;  // mean of its reports
    double loss = 0;       // the same
    double count = 1;
  };
  static constexpr size_t kMaxBlocks = 1000;

  // A loss or an iteration that is not finite is counted and left out. An iteration that is not
  // above the last one means that the job went back (to a checkpoint, say): what was reported from
  // there on is forgotten.
  void add(LossPoint point);

  const std::vector<Block>& blocks() const { return blocks_; }  // by rising iteration
  bool empty() const { return blocks_.empty(); }
  const Block& newest() const { return blocks_.back(); }
  uint64_t not_finite() const { return not_finite_; }
  uint64_t restarts() const { return restarts_; }

 private:
  void halve_oldest();

  std::vector<Block> blocks_;
  uint64_t not_finite_ = 0;
  uint64_t restarts_ = 0;
};

}  // namespace tierpilot::quality
