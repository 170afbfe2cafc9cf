// One program's training steps under a budget: what of a step leaves and when it comes back, by
// what was learned of the steps before.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "policies/swap/learning/step_learner.h"
#include "swap/kept_states.h"
#include "swap/lead.h"
#include "swap/others_forecast.h"
#include "swap/running_step.h"
#include "swap/slot_table.h"
#include "swap/statistics.h"
#include "swap/step_segments.h"
#include "swap/step_watch.h"
#include "swap/transfers.h"
#include "swap/unfinished_saves.h"

namespace tierpilot::swap {

struct SessionSettings {
  std::string rule = "swap";
  int64_t budget_bytes = 0;
  CopyThreads threads{};
};

class Session {
 public:
  enum class Where { kHere, kAway, kComing, kLost };
  // Bits of news(): see tierpilot_swap_news.
  enum News : uint32_t { kLeft = 1, kAhead = 2, kMemory = 4, kStates = 8 };

  // `device`'s copies go to `tiers`.
  Session(const SessionSettings& settings, std::unique_ptr<ComputeDevice> device,
          std::shared_ptr<TierSet> tiers);

  // The functions of tierpilot_swap.h, where their contracts stand.
  void begin();
  Id save(const SavedStorage& storage, const std::byte* data, ComputeDevice::Stream stream,
          bool finished = true);
  void finished();
  Id save_state(int64_t bytes, const std::byte* data, ComputeDevice::Stream stream);
  size_t left(Id* ids, size_t most);
  Where use(Id id);
  size_t ahead(Id* ids, size_t most);
  void fetch(Id id, std::byte* data, ComputeDevice::Stream stream);
  Where wait(Id id);
  void release(Id id);
  void held(Id id);
  bool room(int64_t bytes, bool wait);
  bool drop(Id id);
  const std::atomic<uint32_t>& news() const { return news_; }
  void tell_memory(int64_t held_bytes, int64_t peak_bytes);
  bool segment_begin(uint64_t place, int64_t input_bytes);
  void segment_end(bool possible);
  void failed();

  // What the next run may start from, and what another one left, before the first step.
  KeptPlans kept();
  void restore(KeptPlans plans);

  const SessionSettings& settings() const { return settings_; }
  // The one that was set, or what the device was found to have.
  int64_t budget_bytes() const { return budget_bytes_; }
  const HostPool& pool() const { return transfers_.pool(); }
  const ComputeDevice& device() const { return *device_; }
  Statistics statistics();
  StepLife last_step();

 private:
  // What is aimed at: the rest of the budget is for what nobody foresaw.
  int64_t target_bytes() const { return budget_bytes_ - budget_bytes_ / 20; }
  void finish_step();
  int64_t going_states() const;
  StepWithStates with_states_of(const StepEnd& seen, bool settled) const;
  void see_to_states(const StepWithStates& step);
  void mend();
  void try_copy_out(Id id);
  void let_leave(Id id, bool it, bool all_before);
  void lower_budget();
  // Of the device, now and until the next event.
  int64_t needed_bytes() const;
  bool over_budget() const { return needed_bytes() > target_bytes(); }
  bool makes_room() const;
  bool plainly_fits();
  bool let_oldest_leave();
  bool fits(int64_t bytes);
  bool nothing_to_wait_for() const;
  size_t states_ahead(Id* ids, size_t most, int64_t& bytes,
                      const std::function<bool(int64_t)>& is_time_for);
  void stall(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until);
  void settle_to_measure();
  void settle();
  void passed(std::unique_lock<std::mutex>& lock);
  void copied(const Slot& slot, bool in);
  void tell_news();
  // At the end of what changes them.
  class Telling {
   public:
    explicit Telling(Session& session) : session_(session) {}
    ~Telling() { session_.tell_news(); }

   private:
    Session& session_;
  };

  const SessionSettings settings_;
  std::atomic<int64_t> budget_bytes_;
  bool ran_out_ = false;                  // the device had no room in this step
  bool outgrown_ = false;                 // it is not known, and may not fit
  static constexpr int kMostLowered = 5;  // times by an eighth: half of it stays
  int lowered_ = 0;
  const std::unique_ptr<ComputeDevice> device_;
  std::atomic<ComputeDevice::Stream> last_stream_ = 0;  // that was saved in
  std::atomic<uint32_t> news_ = 0;
  std::mutex mutex_;
  StepLearner learner_;
  StepSegments segments_;
  StepWatch watch_;
  RunningStep step_;
  SlotTable slots_;
  UnfinishedSaves unfinished_;
  KeptStates states_;
  OthersForecast others_;
  int64_t going_bytes_ = 0;  // of states, when the step began: still here, to leave
  int64_t copied_ns_ = 0;    // of processors, by copies until the step began
  Lead lead_;
  Statistics statistics_;  // but for what the others count
  StepLife last_life_;
  Transfers transfers_;  // last: its threads end first
};

}  // namespace tierpilot::swap
