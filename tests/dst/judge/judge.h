// What the promises are held against: what clients were told, what really ran where and what each
// version of a dataset really is.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "coordinator/model.h"
#include "tests/dst/judge/contents.h"
#include "tests/dst/judge/processes.h"
#include "tests/dst/judge/promises.h"
#include "tests/dst/judge/saved_work.h"
#include "tests/dst/judge/swap_rooms.h"

namespace tierpilot::dst {

// lost-submit, overlap, half-gang, lost-version, few-copies, lone-write, two-values, lost-write,
// came-back, node-fault, skew, stuck, unbounded, crash, ran-again, undone-end, lost-fault,
// fault-twice, too-soon, stale-read, left-over, undone-promise, old-checkpoint, wrong-checkpoint,
// lost-checkpoint, short-grace, false-verdict, broken-promise, undecided, over-unit, held-back,
// unsound-unit, wrong-victim, over-room, out-of-turn, idle-room, unfit-room.
const std::vector<std::string>& invariant_names();

struct Violation {
  std::string invariant;
  std::string what;
};

class Judge {
 public:
  // Only these invariants are held; empty: all.
  explicit Judge(std::set<std::string> held) : held_(std::move(held)) {
    processes_.on_began = [this](uint64_t task) { check_order(task); };
  }

  std::function<void(const std::string&)> on_tell;  // what happens, for people
  // Clients were told that it is there, for the first time.
  std::function<void(const std::string& dataset, uint64_t version, Digest)> on_published =
      [](const auto&, uint64_t, Digest) {};
  std::function<int64_t()> now_ns = [] { return int64_t{0}; };

  void violated(const std::string& invariant, std::string what);
  const std::optional<Violation>& verdict() const { return verdict_; }

  Processes& processes() { return processes_; }
  SavedWork& saved_work() { return saved_work_; }
  const SavedWork& saved_work() const { return saved_work_; }
  Promises& promises() { return promises_; }
  const Promises& promises() const { return promises_; }
  SwapRooms& swap_rooms() { return swap_rooms_; }

  Contents& contents() { return contents_; }
  // A node has made it this version of the dataset, and will tell so.
  void committed(const Run& run, const std::string& dataset, uint64_t version, Digest content);
  // A task is given this content of that version.
  void read(const Run& run, const std::string& dataset, uint64_t version, Digest content);
  // Clients were told.
  void dataset_added(const std::string& dataset, uint64_t version, Digest content);
  void removal_began(const std::string& dataset);
  void removal_ended(const std::string& dataset, bool removed);
  // Its last bytes were damaged, which a node has noticed and will tell, or went with a disk.
  void lost_by_damage(const std::string& dataset);
  bool is_lost(const std::string& dataset) const;

  struct Value {
    uint64_t version = 0;
    Digest content = 0;
  };
  // The newest one that must be there; empty while a removal is under way.
  std::map<std::string, Value> current() const;
  // Also while a removal is under way, which may yet be refused; nothing where none is known.
  std::optional<Value> newest(const std::string& dataset) const;
  // While its removal is under way: it is gone, and this is what was added under its name since.
  bool is_made_anew(const std::string& dataset, Digest content) const;
  // Zero: not known.
  Digest published(const std::string& dataset, uint64_t version) const;
  // No write that succeeded is missing in `content`.
  void check_writes(const std::string& dataset, Digest content);

  // Faults of units, by unit and kind, each of a kind of its own. Its daemon tells of it from now
  // on, and need not any more.
  void unit_failed(const std::string& unit, const std::string& kind);
  void fault_acknowledged(const std::string& unit, const std::string& kind);
  // And whether they were acknowledged.
  const std::map<std::pair<std::string, std::string>, bool>& unit_faults() const {
    return unit_faults_;
  }

  // What clients know of datasets at a moment: who submits then reads nothing older.
  struct Seen {
    uint64_t version = 0;
    int removals = 0;  // before
  };
  std::map<std::string, Seen> seen() const;

  // Tasks. Nothing of the content counts here but the expected exit code. `before`: what was seen
  // before they were submitted, at `asked_ns` for the first time.
  void acknowledged(const SubmitReceipt& receipt, const std::vector<TaskSpec>& specs,
                    const std::map<std::string, Seen>& before = {}, int64_t asked_ns = 0);
  void refused(const std::string& request, const Error& why) const {
    tell("request '{}' is refused: {}", request, why.message);
  }
  void cancel_asked(uint64_t task) { cancelled_.insert(task); }
  // It is told to give its share up.
  void gives_way(uint64_t task);
  // Users are told so.
  void ended(const Task& task);
  bool has_ended(uint64_t task) const { return ends_.contains(task); }
  const std::map<uint64_t, TaskSpec>& tasks() const { return tasks_; }

 private:
  template <class... Args>
  void tell(fmt::format_string<Args...> text, Args&&... args) const {
    if (on_tell) on_tell(fmt::format(text, std::forward<Args>(args)...));
  }
  void was_removed(const std::string& dataset);
  int removals(const std::string& dataset) const;
  // Whoever submitted it knew of a newer one by then.
  void check_fresh(const Run& run, const std::string& dataset, uint64_t version);
  // Those that it stands behind came to a good end before it began.
  void check_order(uint64_t task);
  void publish(const std::string& dataset, uint64_t version, Digest content, const std::string& by);

  std::set<std::string> held_;
  std::optional<Violation> verdict_;
  Processes processes_{[this](const std::string& invariant, std::string what) {
                         violated(invariant, std::move(what));
                       },
                       [this](const std::string& what) {
                         if (on_tell) on_tell(what);
                       }};
  SavedWork saved_work_{[this](const std::string& invariant, std::string what) {
                          violated(invariant, std::move(what));
                        },
                        [this](const std::string& what) {
                          if (on_tell) on_tell(what);
                        }};
  Promises promises_{[this](const std::string& invariant, std::string what) {
                       violated(invariant, std::move(what));
                     },
                     [this](const std::string& what) {
                       if (on_tell) on_tell(what);
                     }};
  SwapRooms swap_rooms_{[this](const std::string& invariant, std::string what) {
    violated(invariant, std::move(what));
  }};
  Contents contents_;
  struct Commit {
    uint64_t version = 0;
    Digest content = 0;
  };
  std::map<std::pair<Run, std::string>, Commit> commits_;
  struct Known {
    std::map<uint64_t, Digest> versions;
    std::vector<Digest> writes;  // that succeeded
    bool removing = false;
    bool lost = false;  // by damage
  };
  std::map<std::string, Known> datasets_;
  std::map<std::string, int> removed_;                 // how often, whatever has the name now
  std::map<uint64_t, TaskSpec> tasks_;                 // acknowledged
  std::map<uint64_t, std::vector<uint64_t>> parents_;  // of those of them that stand behind others
  std::map<uint64_t, std::map<std::string, Seen>> seen_;  // before each task was submitted
  std::set<uint64_t> cancelled_;
  std::map<uint64_t, TaskState> ends_;
  std::map<std::pair<std::string, std::string>, bool> unit_faults_;
};

// Of a task's command: how long it runs, and its exit code.
int64_t runs_ms(const std::vector<std::string>& argv);
int exits_with(const std::vector<std::string>& argv);
// How often it saves a checkpoint; 0: it saves none.
int64_t saves_every_ms(const std::vector<std::string>& argv);
// So many thousandths of a unit it is as fast with as it can be; 0: it has units of its own.
uint32_t needs_milli(const std::vector<std::string>& argv);
inline constexpr size_t kSavesEvery = 3, kNeedsMilli = 4;
void set_argument(std::vector<std::string>& argv, size_t which, int64_t value);
inline constexpr int64_t kIterationMs = 40;

}  // namespace tierpilot::dst
