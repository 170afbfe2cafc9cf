// Users: they repeat what was not answered, under the same request id, and remember what they were
// told.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/memory/pool/names.h"
#include "tests/dst/coordinator.h"
#include "tests/dst/plan.h"
#include "tests/dst/sharing.h"

namespace tierpilot::dst {

// Of the plan's seed: the tasks of its job with this number.
std::vector<TaskSpec> make_job(uint64_t seed, uint64_t number, const Kinds& included);

class Client {
 public:
  struct Surroundings {
    Loop& loop;
    Judge& judge;
    Coordinator& coordinator;
    uint64_t seed = 0;
    // What a node has now; null: nothing.
    std::function<const Digest*(const std::string& node, const DatasetId& id)> content;
    // Of room for swapping: more than any node offers, where that is known; no more than all do.
    std::function<bool(const TaskSpec&)> asks_too_much, asks_little;
  };
  explicit Client(Surroundings surroundings)
      : at_(std::move(surroundings)), random_(at_.seed, "client") {}

  void submit(uint64_t number, std::vector<TaskSpec> tasks);
  void add_dataset(uint64_t number);
  void remove_dataset(uint64_t number);
  // Those that jobs have left that have ended.
  void remove_checkpoints();
  void cancel(uint64_t task);
  // Of each node all units that it shares, and all room for swapping, which nobody has any more.
  void ask_for_all(const std::vector<SharedUnits>& by_node,
                   const std::vector<uint64_t>& swap_bytes_by_node);
  // Users who hear that a dataset is lost give up what waits for it.
  void cancel_users_of_lost();
  // What was taken while the coordinator did not know the nodes, and fits none.
  void cancel_those(const std::function<bool(const TaskSpec&)>& never_fits);
  // An operator has all copies of all datasets read, and made anew where they are damaged.
  void check_datasets(bool repair);
  size_t unanswered() const { return open_.size(); }
  // As anybody may at any moment: what is not there any more has been removed.
  void look_at_datasets();
  // Its removal was told, and nobody has asked to add one of that name since.
  bool is_gone(const std::string& dataset) const { return gone_.contains(dataset); }

 private:
  using Answer = std::function<void(bool over)>;  // false: it is asked again
  // Has `call` made at the coordinator until an answer says that it is over, some 40 times at most
  // where `gives_up`.
  void ask(const std::string& request, std::function<void(Core&, Answer)> call, bool gives_up);
  void send(const std::string& request, const std::function<void(Core&, Answer)>& call, int left);
  struct Before {
    std::map<std::string, Judge::Seen> seen;
    int64_t asked_ns = 0;
  };
  void told(const std::string& request, const std::vector<TaskSpec>& tasks, const Before& before,
            const Result<SubmitReceipt>& receipt);
  void note_gone(const std::string& dataset);
  // `too_much`: all calls of the request were made when the coordinator could tell that.
  void check_room(const std::string& request, const std::vector<TaskSpec>& tasks, bool too_much,
                  const Result<SubmitReceipt>& receipt);

  Surroundings at_;
  Random random_;
  std::map<std::string, bool> open_;
  std::map<std::string, SubmitReceipt> receipts_;
  struct Addition {
    std::string dataset;
    LifePtr asked;  // the coordinator's that was
  };
  std::map<uint64_t, Addition> additions_;  // not answered
  std::set<std::string> gone_;
  std::set<std::string> may_be_taken_;  // requests
  uint64_t requests_ = 0;
  uint64_t calls_ = 0;
};

}  // namespace tierpilot::dst
