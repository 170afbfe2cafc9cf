// Tasks with shares of units: a policy (policies/sharing/live/share_policy.h) says which starts
// where and with how much, what it has from then on, and which promises are made; this carries it
// out. Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/gangs/checkpoints.h"
#include "coordinator/core/outcomes/lifecycle.h"
#include "coordinator/core/sharing/share_forecasts.h"
#include "coordinator/core/sharing/share_record.h"
#include "coordinator/core/sharing/slow_downs.h"
#include "policies/sharing/live/share_policy.h"
#include "policies/sharing/live/waiting_promises.h"

namespace tierpilot {

// What a task has of a unit and what is known of it.
struct ShownShare {
  UnitShare given;
  ShareForecast forecast;
  std::optional<double> used_milli;
  std::optional<double> left_s;          // with what it has
  std::optional<double> promise_left_s;  // at its end, if it has ended
  std::string promise;                   // what became of it; empty: there is none
  std::vector<uint64_t> neighbours;
  std::vector<SlowDown> slow_downs;  // beside each of them
  bool tells_pace = false;           // of which the slow-downs can be learned
};

struct UnitLooks {
  std::vector<UnitLook> units;  // the best of them, the chosen one first
  uint32_t looked_at = 0;
  uint32_t eligible = 0;  // of these
};

// Of a task that has ended, as far as it is known; nothing: it had none and was promised nothing.
std::optional<ShownShare> ended_share(const ClusterState& state, const Task& task);

class ShareKeeper {
 public:
  // By settings.share_policy; std::invalid_argument where there is none of the name.
  ShareKeeper(ClusterState& state, Lifecycle& lifecycle, Checkpoints& checkpoints,
              std::shared_ptr<const sharing::JobPredictor> predictor);

  // After restore(): what has shares already.
  void begin();
  // Starts what can be started.
  void pump();
  // Several times a second; once in a while, looks at what running jobs have.
  void tick();

  // What the lifecycle tells.
  void started(const Task& task);
  void ended(const Task& task, bool succeeded);
  void reported(const Task& task, const JobPoint& report);

  // Whether the promises of these tasks can be kept. Of those that may be on trial they are, where
  // they can be kept if all goes as predicted; of others they are not any more. `coming` are taken,
  // and on their way to the disk.
  using SpecList = std::vector<const TaskSpec*>;
  Status check_promises(std::vector<TaskSpec>& specs, const SpecList& coming);
  // Those that have parts of a GPU or of cores, by their unit id.
  std::vector<uint64_t> sharers_of(const std::string& unit) const;
  // Nothing: it has none, or has ended.
  std::optional<ShownShare> share_of(uint64_t task) const;
  // Where one that waits could start now, and why not elsewhere.
  std::vector<UnitLook> looks_now(uint64_t task) const;
  // Those that gave their share up for another one.
  uint64_t preemptions() const { return preemptions_; }

 private:
  struct Preemption {
    int64_t since_ns = 0;
    std::string checkpoint;  // the newest one then
    std::string reason;
    uint64_t for_task = 0;          // 0: for those that stay on its unit
    bool ordered = false;           // its end, at least once
    std::weak_ptr<NodeLink> asked;  // over which it was asked for a checkpoint
    std::weak_ptr<NodeLink> told;   // over which it was told to end while it ran
  };
  struct Ordered {
    uint32_t milli = 0;
    std::weak_ptr<NodeLink> over;  // an answer comes over this one only
  };
  using UnitId = std::pair<std::string, size_t>;  // node, unit
  struct Holder {
    explicit Holder(ShareForecast forecast) : record(std::move(forecast)) {}
    AttemptId attempt;
    std::string node;
    std::optional<UnitId> on;
    ShareRecord record;
    std::optional<Preemption> preemption;
    std::optional<Ordered> ordered;  // a change of its share, until it is answered
    std::string checkpoint;          // the newest one
    bool unit_is_known = true;       // what it is foretold is for that
  };
  struct UnitType {
    Engine engine = Engine::kCpu;
    UnitFeatures features;
  };
  // The nodes with units that are shared, and what is on these.
  struct Units {
    std::vector<const NodeRecord*> nodes;
    std::vector<sharing::LiveNode> live;
    std::map<std::string, UnitType> types;  // of these units
  };

  // What was learned goes to the store, and comes from it.
  void restore_learned();
  void learn_of(const Task& task, const ShareRecord& record);
  void remember(const TaskSpec& spec, const ShareForecasts::Learned& learned);
  void remember_slow_downs();
  UnitFeatures features(const NodeFacts& node, size_t unit) const;
  // Where it is not known yet on which it runs: of GPUs, one that there is.
  UnitFeatures usual_unit(const TaskSpec& spec) const;
  RunCorrection correction(const TaskSpec& spec) const;
  ShareForecast forecast(const TaskSpec& spec, const UnitFeatures& unit) const;
  Units units(bool open_only) const;
  // For nobody, where something speaks against new work on them.
  void close_unsound(Units& units) const;
  bool takes_checkpoints(uint64_t id, const Holder& holder) const;
  // Once it is asked to: after the iteration that it is in, as it did before, or at the end of its
  // grace.
  double saves_in_s(uint64_t id, const ShareRecord& record) const;
  // As it is known; on trial, as it is hoped to be.
  sharing::LiveJob known_job(const Task& task, const Holder& holder) const;
  sharing::LiveJob live_job(const Task& task, const Holder& holder) const;
  sharing::WaitingJob waiting_job(uint64_t id, const TaskSpec& spec, double promise_left_s,
                                  const Units& units) const;
  // Of a task that waits: on trial as it is hoped to be, and without a promise that is hopeless.
  sharing::WaitingJob waiting_job(const Task& task, const Units& units) const;
  std::vector<sharing::WaitingJob> promised_before(const Units& units) const;
  sharing::WaitingJob job_of(const TaskSpec& spec, const Units& units, bool on_trial) const;
  std::string waits_for(const TaskSpec& spec) const;
  Status check_promise(TaskSpec& spec, const std::string& who, sharing::WaitingJob job,
                       sharing::Promises& promises);
  void foretell_restored();
  void review_trials(sharing::LiveUnit unit);
  // Who still waits when its time is over has none.
  void end_trials_of_waiting();
  void end_trials(const std::vector<uint64_t>& tasks, TrialEnd end);
  std::string stands_back(const Task& task, const Units& units) const;
  void look_at(Task& task, Units& units, sharing::WaitingPromises& promises);
  bool lacks_swap_room(const Task& task, const Units& now, const sharing::WaitingJob& job) const;
  std::string why_it_waits(const Task& task, const Units& units,
                           const sharing::WaitingJob& job) const;
  // In the order in which they are looked at.
  std::vector<uint64_t> queue_to_look_at() const;
  std::vector<sharing::WaitingJob> promised_among(const std::vector<uint64_t>& tasks,
                                                  const Units& units) const;
  void look_through_queue(Units& units);
  // Null: it may have it, if it has enough left.
  const char* node_refuses(const Task& task, const NodeRecord& node) const;
  // 0: it is not.
  uint64_t kept_for_another(const Task& task, const UnitId& unit) const;
  std::string why_not(const Task& task, const NodeRecord& node, size_t index,
                      const sharing::LiveUnit& unit, const sharing::WaitingJob& job) const;
  UnitLooks looks(const Task& task, const Units& units, const sharing::WaitingJob& job,
                  const sharing::Start* chosen) const;
  // On units that it may use: of its own node, if it wants one, and not kept for others.
  std::optional<sharing::Start> start_for(const Task& task, Units& units,
                                          const sharing::WaitingJob& job,
                                          sharing::WaitingPromises& promises);
  // On those that are kept for nobody.
  std::optional<sharing::Start> start_elsewhere(const Task& task, Units& units,
                                                const sharing::WaitingJob& job,
                                                sharing::WaitingPromises& promises);
  // And not `shut`, by node and unit.
  std::optional<sharing::Start> start_on_open(const Task& task, Units& units,
                                              const sharing::WaitingJob& job,
                                              const std::vector<std::pair<size_t, size_t>>& shut);
  // On the unit on which others end for it, as it is when they are gone: those are in `preempted`.
  std::optional<sharing::Start> start_on_kept(const Task& task, Units& units,
                                              const sharing::WaitingJob& job);
  bool has_kept_unit(uint64_t task) const;
  // It needs no unit to be kept for it any more, and nobody to end who was not told to yet.
  void let_go(uint64_t task);
  void place(Task& task, const Units& units, const sharing::Start& start,
             const sharing::WaitingJob& job, int64_t decide_ns);
  // `for_task`: see Preemption.
  void preempt(uint64_t task, uint64_t for_task, const std::string& reason);
  void end_preempted();
  void end_if_saved(uint64_t id, Holder& holder);
  void adjust();
  void adjust(const UnitId& id, const sharing::LiveUnit& unit);
  // Who was ended for its neighbours has left it: they come before those that wait.
  void adjust_soon(const UnitId& id);
  // What it will have once its node has answered.
  uint32_t has_or_awaits(const Task& task, const Holder& holder) const;
  void order(uint64_t task, uint32_t milli);
  sharing::Sharer sharer(const Task& task, const ShareRecord& record) const;
  // Who runs there may have come or gone, or more is known of them.
  void heed_on(const UnitId& unit);
  void put_on(UnitId unit, uint64_t task, Holder& holder);
  void take_off_unit(uint64_t task, Holder& holder);
  std::set<uint64_t> holders_on(const UnitId& unit) const;
  void answered(AttemptId attempt, uint32_t ordered, const Result<uint32_t>& milli);

  ClusterState& state_;
  Lifecycle& lifecycle_;
  Checkpoints& checkpoints_;
  SlowDowns slow_downs_;
  std::unique_ptr<sharing::SharePolicy> policy_;
  ShareForecasts forecasts_;
  // They fit when they are asked.
  mutable CoreSpeeds speeds_;
  mutable CoreSpeeds gpu_speeds_{0};  // by kind
  mutable CoreSpeeds gpu_hosts_;      // the cores beside GPUs, by what nodes measure
  std::map<uint64_t, Holder> holders_;
  std::map<UnitId, std::set<uint64_t>> on_unit_;  // of these those that know theirs
  std::map<UnitId, uint64_t> kept_for_;           // units on which jobs end for a task that waits
  int64_t next_look_ns_ = 0;
  int64_t queue_rests_until_ns_ = 0;
  uint64_t go_on_with_ = 0;  // the best-effort task that the last look at the queue came to; 0: all
  bool pumping_ = false;
  uint64_t preemptions_ = 0;
  // Answers that outlive it find it gone.
  std::shared_ptr<ShareKeeper*> self_ = std::make_shared<ShareKeeper*>(this);
};

}  // namespace tierpilot
