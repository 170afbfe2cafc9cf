// Which processes of tasks live, and that they may: never two attempts of a task at once, nor ranks
// of two tries of a gang, but for a moment where a machine's clock stood still; and none of a task
// whose end is on the disk of a node that is waited for.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace tierpilot::dst {

struct Run {
  uint64_t task = 0;
  uint32_t attempt = 0;
  int node = 0;
  auto operator<=>(const Run&) const = default;
};

class Processes {
 public:
  using Violated = std::function<void(const std::string& invariant, std::string what)>;
  // `tell`: what happens, for people.
  Processes(Violated violated, std::function<void(const std::string&)> tell)
      : violated_(std::move(violated)), tell_(std::move(tell)) {}

  // `gang`: 0: it is no rank.
  void began(const Run& run, int64_t now_ns, uint64_t gang = 0);
  // `well`: by itself, with exit code 0.
  void ended(const Run& run, bool well = false);
  // It came to its end by itself, and a record of that is on its node's disk.
  void end_kept(const Run& run, int64_t now_ns) { kept_[run.task] = {run, now_ns}; }
  // Whether the node's lease has held ever since.
  std::function<bool(int node, int64_t since_ns)> is_leased_since = [](int, int64_t) {
    return false;
  };
  // Whether somebody was told that the task, or gang, has ended.
  std::function<bool(uint64_t task)> is_told = [](uint64_t) { return false; };
  // A process of the task began, or of a rank of that gang.
  std::function<void(uint64_t task)> on_began = [](uint64_t) {};
  // Whether that attempt came to its end by itself, with exit code 0, on any node.
  bool has_ended_well(uint64_t task, uint32_t attempt) const {
    return ended_well_.contains({task, attempt});
  }
  bool runs(uint64_t task, uint32_t attempt) const;
  // Whether any attempt of it did; of a gang that many ranks of one.
  bool has_ended_well(uint64_t task) const;
  bool has_gang_ended_well(uint64_t gang, uint32_t ranks) const;
  // Until then the node may not have noticed that its machine was paused.
  void unsure(int node, int64_t until_ns) { unsure_until_ns_[node] = until_ns; }
  bool is_sure(int node, int64_t now_ns) const;
  // At every step: what one may excuse for a moment must not last.
  void look(int64_t now_ns);
  // That the task is a rank of; 0: of none that has run.
  uint64_t gang_of(uint64_t task) const {
    const auto known = gangs_.find(task);
    return known == gangs_.end() ? 0 : known->second;
  }
  // The gang's end is on disk.
  void gang_ended(uint64_t gang, uint32_t attempt, uint32_t ranks, bool well, int64_t now_ns);

 private:
  struct Pair {
    Run one, other;
    std::string invariant;
    auto operator<=>(const Pair&) const = default;
  };
  struct Kept {
    Run run;
    int64_t at_ns = 0;
  };
  bool lives(const Run& run) const;
  void meet(const Run& run, const Run& other, const char* invariant, int64_t now_ns);

  void look_whether_again(const Run& run, int64_t now_ns);

  Violated violated_;
  std::function<void(const std::string&)> tell_;
  std::map<uint64_t, Kept> kept_;  // the last one, by task
  std::map<uint64_t, std::set<Run>> by_task_, by_gang_;
  std::map<uint64_t, uint64_t> gangs_;                                // of ranks, by their task
  std::map<std::pair<uint64_t, uint32_t>, std::set<uint64_t>> well_;  // ranks, by gang and try
  std::set<std::pair<uint64_t, uint32_t>> ended_well_;                // by task and attempt
  std::map<int, int64_t> unsure_until_ns_;
  std::set<Pair> excused_;
};

}  // namespace tierpilot::dst
