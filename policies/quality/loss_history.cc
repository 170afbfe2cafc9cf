#include "policies/quality/loss_history.h"

#include "policies/quality/usable_loss.h"

namespace tierpilot::quality {

void LossHistory::add(LossPoint point) {
  if (!is_usable_loss(point.loss) || !is_usable_loss(point.iteration)) {
    ++not_finite_;
    return;
  }
  if (!blocks_.empty() && point.iteration <= blocks_.back().iteration) {
    ++restarts_;
    while (!blocks_.empty() && blocks_.back().iteration >= point.iteration) blocks_.pop_back();
  }
  if (blocks_.size() == kMaxBlocks) halve_oldest();
  blocks_.push_back({point.iteration, point.loss, 1});
}

// Half of all blocks, so that a report costs little in the mean.
void LossHistory::halve_oldest() {
  constexpr size_t kMerged = kMaxBlocks / 2;
  size_t kept = 0;
  for (size_t i = 0; i < kMerged; i += 2) {
    const Block &a = blocks_[i], &b = blocks_[i + 1];
    const double count = a.count + b.count;
    blocks_[kept++] = {(a.iteration * a.count + b.iteration * b.count) / count,
                       (a.loss * a.count + b.loss * b.count) / count, count};
  }
  blocks_.erase(blocks_.begin() + kept, blocks_.begin() + kMerged);
}

}  // namespace tierpilot::quality
