// Promises that tasks are done in time: what users were told of them, and what became of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "coordinator/model.h"

namespace tierpilot::dst {

// As `task show` has it; that it was on trial before it was made counts for nothing.
enum class PromiseTold { kNothing, kOnTrial, kMade, kNotMade, kKept, kBroken, kVoid };
PromiseTold read_promise(const std::string& words);

class Promises {
 public:
  using Violated = std::function<void(const std::string& invariant, std::string what)>;
  // `tell`: what happens, for people.
  Promises(Violated violated, std::function<void(const std::string&)> tell)
      : violated_(std::move(violated)), tell_(std::move(tell)) {}

  // The task was taken at some time from `asked_ns` to `now_ns`.
  void acknowledged(uint64_t task, const TaskSpec& spec, int64_t asked_ns, int64_t now_ns);
  // Some user is shown it.
  void told(const Task& task, const std::string& words);
  // The attempt came to a good end.
  void done(AttemptId attempt, int node, int64_t now_ns) { done_[attempt] = {now_ns, node}; }
  // What ended there before is told as later than it was.
  void node_stood_still(int node, int64_t now_ns) { still_[node] = now_ns; }
  // The coordinator's machine stands still for so long, and does not know.
  void coordinator_stands_still(int64_t now_ns, int64_t ns) { stood_[now_ns] += ns; }
  // Its clock may have been set, and nobody could notice.
  void clock_is_unsure(int64_t now_ns) { unsure_ns_ = now_ns; }
  // Whether nothing has failed since then, and what users say of run times is right.
  std::function<bool(int64_t since_ns)> is_undisturbed_since = [](int64_t) { return false; };

  bool is_on_trial(uint64_t task) const;

 private:
  struct Known {
    TaskSpec spec;
    int64_t asked_ns = 0, taken_ns = 0;  // it was taken between these
    PromiseTold told = PromiseTold::kNothing;
    std::string words{};
  };
  struct Done {
    int64_t at_ns = 0;
    int node = 0;
  };
  void check_end(const Task& task, const Known& known);
  // It may be due so much later.
  int64_t stood_since_ns(int64_t ns) const;
  void check_kept(uint64_t task, const Known& known, const Done& done);
  void check_broken(uint64_t task, const Known& known, const Done& done);

  Violated violated_;
  std::function<void(const std::string&)> tell_;
  std::map<uint64_t, Known> promises_;
  std::map<AttemptId, Done> done_;
  std::map<int, int64_t> still_;
  std::map<int64_t, int64_t> stood_;
  int64_t unsure_ns_ = -1;
};

}  // namespace tierpilot::dst
