// The life of gangs: their ranks, tasks of their own, are placed and started together, and end
// together; a gang is tried again only when nothing of its last try runs any more. Event loop
// thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/gangs/gang_credits.h"
#include "coordinator/core/gangs/gang_plan.h"
#include "coordinator/core/outcomes/lifecycle.h"
#include "coordinator/job_point.h"

namespace tierpilot {

class GangLife {
 public:
  // `after` runs its work later on the loop.
  using After = std::function<void(int64_t us, std::function<void()>)>;
  GangLife(ClusterState& state, Lifecycle& lifecycle, After after)
      : state_(state),
        lifecycle_(lifecycle),
        after_(std::move(after)),
        policies_(state),
        credits_(state, policies_.oversight()) {}

  // Who decides; to be begun by whoever wants a guard over them.
  GangPolicies& policies() { return policies_; }

  // After restore(): gangs whose ranks ended while their own end was not on disk.
  void begin();
  // Gives the ranks to their nodes once that is on disk: rank 0 first, whose node finds the port at
  // which all meet.
  void place(Task& gang, const GangPlan& plan);

  // What the lifecycle tells.
  void rank_started(Task& rank);
  void rank_over(Task& rank, const Verdict& verdict);
  // What a rank said of its job, now or before the coordinator started.
  void reported(const Task& rank, const JobPoint& point);
  // The device failed under whatever ran on it: counted against the unit, and the gang that has it
  // begins anew, which is not counted against the gang. `detail` is for people. What was told
  // before (see told_as()) is only written again, as that may have failed.
  void unit_failed(const std::string& unit, const std::string& kind, const std::string& detail,
                   const std::string& told = {}, std::function<void(Status)> written = {});
  // It is to be tried again with so many ranks, which is not counted against it.
  void begin_again(Task& gang, uint32_t ranks, const std::string& why);
  // All ranks are asked to end.
  void stop(Task& gang, const std::string& why);
  // Gangs of whose last failure something is remembered.
  size_t blames() const { return blames_.size(); }

 private:
  struct Rank {
    PlacedRank on;
    uint32_t attempt_before = 0;
    bool told = false;  // its node may have it
  };
  // The try of a gang that is under way.
  struct Try {
    uint32_t attempt = 0;
    std::vector<Rank> ranks;  // by rank; empty after a restart: nodes tell which they have
    std::map<uint32_t, Verdict> over;
    std::optional<uint32_t> first_bad;  // the rank that ended the others
    bool stopping = false;
    std::string why_stopped{};   // as its ranks were told; empty: not known
    std::string device_fault{};  // that it ends of: none of its ranks is to blame
    bool counts = true;          // where none of its ranks ended it
    std::string checkpoint{};    // that all its ranks begin from; empty: from nothing
    int64_t placed_ns = 0;       // boot time; 0: by an earlier coordinator
    int64_t began_ns = 0;        // when all ranks ran; 0: they do not, or did before
    bool has_worked = false;     // as it told
  };

  void committed(uint64_t gang, uint32_t attempt, const Status& status);
  void unassign(Task& gang, const std::string& why);
  void send(Task& gang, Try& current, uint32_t rank, uint16_t master_port);
  void answered(AttemptId rank_attempt, uint64_t gang, const std::string& node,
                const Result<uint16_t>& taken);
  void watch_start(const Task& gang);
  // Its ranks, as they are now.
  std::vector<Task> place_ranks(const Task& gang, const GangPlan& plan, Try& current);
  Try* current(uint64_t gang, uint32_t attempt);
  void look_whether_all_run(Task& gang);
  void note_restart(const Try& current, int64_t working_ns);
  void conclude(Task& gang);
  // Of all ranks' ends the one that caused the others; null where the try was only asked to end.
  const Task* culprit(const Task& gang, const Try& last) const;
  Verdict judge_try(Task& gang, const Try& last);
  // Writes down what its units are to blame for. True: the same befell other units before, so that
  // the gang itself is to blame.
  bool blame_units(const Task& gang, const Task& culprit);
  // On disk, too.
  void count(const UnitFailure& failure, std::function<void(Status)> written = {});
  // With it the unit is taken out of service if it has failed too often.
  void write(const UnitFailure& failure, std::function<void(Status)> written);

  ClusterState& state_;
  Lifecycle& lifecycle_;
  After after_;
  GangPolicies policies_;
  GangCredits credits_;
  std::map<uint64_t, Try> tries_;  // by gang
  struct Blame {
    std::string kind;
    std::set<std::string> units;
  };
  std::map<uint64_t, Blame> blames_;  // of each gang's last failure
};

// Its node ended the rank for reasons of its own, such as a drain, and not as the gang was to end.
bool ended_by_its_node(const Task& rank, const std::string& why_stopped);

// That a rank has, by their ids.
std::vector<std::string> units_of_rank(const Task& rank);

}  // namespace tierpilot
