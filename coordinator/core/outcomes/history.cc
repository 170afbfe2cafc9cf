#include "coordinator/core/outcomes/history.h"

#include <algorithm>
#include <utility>

#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr int64_t kRoundNs = 600'000'000'000;
// Once a day all is looked at, also what stands behind a task that seems young.
constexpr uint64_t kRoundsToTheEnd = 144;
// Of tasks, in one commit with what others write: a millisecond or two; more only where more arrive
// than are forgotten.
constexpr uint64_t kSliceTasks = 32;
constexpr uint64_t kMostSliceTasks = 4'096;
constexpr int64_t kLeastPauseUs = 1'000;
// Of tasks a second, where hardly any arrive: each slice is in the way of somebody's commit.
constexpr int64_t kUnhurried = 1'000;
// What is forgotten has to outgrow what arrives by so much, or it is unhurried no more.
constexpr uint64_t kOutgrows = 4;
constexpr const char* kHistoryNow = "history_now_ms";

Result<int64_t> last_known_ms(const ClusterState& state) {
  auto& db = state.store.reader();
  const int64_t wall_ms = state.clock.wall_ms();
  // Stores of older programs have no such time, but a last task.
  const auto last = records::task(db, state.last_task);
  if (!last) return tl::unexpected(last.error());
  return records::setting(db, kHistoryNow, *last ? (*last)->submitted_ms : wall_ms);
}

}  // namespace

struct History::Slice {
  records::PruneRound round;
  bool more = false;
  int64_t asked_ns = 0;
  uint64_t after = 0;  // where it began
};

Status History::begin(int64_t keep_ms) {
  const auto known_ms = last_known_ms(state_);
  if (!known_ms) return tl::unexpected(known_ms.error());
  keep_ms_ = keep_ms;
  clock_ =
      std::make_unique<HistoryClock>(state_.clock, std::min(*known_ms, state_.clock.wall_ms()));
  return {};
}

void History::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (!clock_ || pruning_ || now_ns < next_round_ns_) return;
  next_round_ns_ = now_ns + kRoundNs;
  const int64_t now_ms = clock_->now_ms();
  state_.store.write([now_ms](Db& db) { return records::put_setting(db, kHistoryNow, now_ms); },
                     nullptr);
  if (keep_ms_ <= 0) return;
  round_ = {.finished_before_ms = now_ms - keep_ms_,
            .to_the_end = ++rounds_ % kRoundsToTheEnd == 0};
  last_task_ = state_.last_task;
  slice_tasks_ = kSliceTasks;
  next_slice();
}

void History::next_slice() {
  pruning_ = true;
  auto slice = std::make_shared<Slice>();
  slice->asked_ns = state_.clock.boot_ns();
  slice->after = round_.after;
  state_.store.write(
      [slice, round = round_, most = slice_tasks_](Db& db) -> Status {
        slice->round = round;
        const auto more = records::prune(db, slice->round, most);
        if (!more) return tl::unexpected(more.error());
        slice->more = *more;
        return {};
      },
      [this, slice](const Status& status) { written(*slice, status); });
}

void History::written(const Slice& slice, const Status& status) {
  pruning_ = status && slice.more;
  if (!pruning_) return;
  round_ = slice.round;
  after_(pause_us(slice), [this] { next_slice(); });
}

int64_t History::pause_us(const Slice& slice) {
  const uint64_t arrived = state_.last_task - std::exchange(last_task_, state_.last_task);
  // Ids that are gone already are no work.
  const uint64_t passed = std::min(slice.round.after - slice.after, slice_tasks_);
  slice_tasks_ = arrived > passed ? slice_tasks_ * 2 : slice_tasks_ / 2;
  slice_tasks_ = std::clamp(slice_tasks_, kSliceTasks, kMostSliceTasks);
  // Others get their share of the disk, and the more the longer they have to wait for it.
  const int64_t took_us = (state_.clock.boot_ns() - slice.asked_ns) / 1'000;
  const int64_t least_us = std::max(took_us / 2, kLeastPauseUs);
  if (kOutgrows * arrived > passed) return least_us;
  return std::max(least_us, static_cast<int64_t>(passed) * 1'000'000 / kUnhurried - took_us);
}

}  // namespace tierpilot
