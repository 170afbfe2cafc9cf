// What is where: every saved storage from its save to its end, the copies under way, and the
// budget.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "policies/swap/learning/segments.h"
#include "policies/swap/learning/step_learner.h"
#include "swap/host_pool.h"
#include "swap/lane.h"
#include "swap/pace.h"
#include "swap/process_memory.h"
#include "swap/statistics.h"
#include "swap/step_watch.h"

namespace tierpilot::swap {

struct SessionSettings {
  std::string rule = "swap";
  int64_t budget_bytes = 0;
  size_t out_threads = 1, in_threads = 2;
  // What is aimed at: the rest is for what nobody foresaw.
  int64_t target_bytes() const { return budget_bytes - budget_bytes / 20; }
};

using Id = uint32_t;  // 0: none

class Session {
 public:
  enum class Where { kHere, kAway, kComing, kLost };

  Session(const SessionSettings& settings, std::vector<MeasuredTier> tiers);
  ~Session();

  // The functions of tierpilot_swap.h, where their contracts stand.
  void begin();
  Id save(const SavedStorage& storage, const std::byte* data);
  size_t left(Id* ids, size_t most);
  Where use(Id id);
  size_t ahead(Id* ids, size_t most);
  void fetch(Id id, std::byte* data);
  Where wait(Id id);
  void release(Id id);
  void held(Id id);
  bool drop(Id id);
  bool segment_begin(uint64_t place, int64_t input_bytes);
  void segment_end(bool possible);
  void failed();

  // What the next run may start from, and what another one left, before the first step.
  KeptPlans kept();
  void restore(KeptPlans plans);
  // Why kept plans are not used; empty: they are, or there were none.
  void refused(std::string why);
  std::string plans_refused();

  const SessionSettings& settings() const { return settings_; }
  const HostPool& pool() const { return pool_; }
  Statistics statistics();
  StepLife last_step();

 private:
  enum class State : uint8_t {
    kFree,
    kHere,     // in the device, no copy
    kLeaving,  // in the device, its copy out waits or runs
    kCopied,   // in the device until the front end hears of the copy
    kAway,
    kComing,
    kBack,  // in the device, with a copy in the pool
  };
  struct Slot {
    State state = State::kFree;
    bool dropped = false, lost = false, used = false;
    size_t save = 0;    // its place in the step
    uint64_t step = 0;  // which step
    int64_t bytes = 0;
    std::byte* data = nullptr;
    Block block{};
  };

  Slot* find(Id id);
  bool in_step(const Slot& slot) const { return slot.step == step_; }
  void finish_step();
  void finish_segments(const ObservedStep& seen, int64_t step_ns, int64_t peak_bytes);
  void hold(int64_t bytes);  // more, or less, in the device
  void leave(Id id);
  void mend();
  int64_t others_ahead(size_t from, size_t to) const;
  bool over_budget() const;
  Link link() const;
  void free_slot(Id id);
  void copy_out(Id id, Staging& staging);
  void copy_in(Id id, Staging& staging);
  Life* life_of(const Slot& slot);
  Id next_back(const ObservedStep* order, size_t& use, int64_t& until_ns);
  bool begins_step(const SavedStorage& storage);
  Id add_slot(const SavedStorage& storage, const std::byte* data);
  void stall(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until);

  const SessionSettings settings_;
  HostPool pool_;
  Pace out_pace_, in_pace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  StepLearner learner_;
  SegmentLearner segment_learner_;
  std::vector<Segment> segments_;  // of this step
  int64_t segment_began_ns_ = 0;
  bool in_segment_ = false;
  StepWatch watch_;
  std::vector<Slot> slots_;  // by id; 0 is never used
  std::vector<Id> free_;
  std::deque<Id> copied_;    // the front end has to hear of these
  std::vector<Id> of_step_;  // by save
  uint64_t step_ = 1;
  uint64_t first_place_ = 0;
  size_t unused_ = 0, leaving_ = 0, coming_ = 0, oldest_kept_ = 0;
  size_t away_ = 0;  // of all slots
  size_t late_ = 0;  // saves since the last use, in a backward pass
  int64_t resident_ = 0, coming_bytes_ = 0, largest_ = 0, largest_other_ = 0;
  double lead_factor_ = 2;  // of the time that copies in should take
  Statistics statistics_;
  std::string plans_refused_;
  StepLife life_, last_life_;
  Lane out_, in_;  // last: their threads end first
};

}  // namespace tierpilot::swap
