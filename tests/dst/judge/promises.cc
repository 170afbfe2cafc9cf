#include "tests/dst/judge/promises.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace tierpilot::dst {
namespace {

constexpr int64_t kMsNs = 1'000'000;
// Clocks run apart, and messages take their time.
constexpr int64_t kSlackNs = 500 * kMsNs;
// Where nothing fails: until it is written down, and started.
constexpr int64_t kStartNs = 1'500 * kMsNs;

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

bool is_final(PromiseTold told) {
  return told >= PromiseTold::kNotMade;
}

// Made once, it is so until the task has ended.
bool may_become(PromiseTold now, PromiseTold next) {
  if (now == next || now == PromiseTold::kNothing || now == PromiseTold::kOnTrial) return true;
  return !is_final(now) && next > PromiseTold::kNotMade;
}

}  // namespace

PromiseTold read_promise(const std::string& words) {
  using enum PromiseTold;
  static constexpr std::array<std::pair<const char*, PromiseTold>, 6> kWords{
      {{"on trial", kOnTrial},
       {"made", kMade},
       {"not made", kNotMade},
       {"kept", kKept},
       {"broken", kBroken},
       {"void", kVoid}}};
  for (const auto& [begin, told] : kWords)
    if (words.starts_with(begin)) return told;
  return kNothing;
}

void Promises::acknowledged(uint64_t task, const TaskSpec& spec, int64_t asked_ns, int64_t now_ns) {
  if (spec.share.promise_ms == 0) return;
  const auto [at, fresh] = promises_.try_emplace(task, Known{spec, asked_ns, now_ns});
  if (fresh && !spec.share.promise_on_trial) at->second.told = PromiseTold::kMade;
}

void Promises::told(const Task& task, const std::string& words) {
  const auto found = promises_.find(task.id);
  if (found == promises_.end()) return;
  auto& known = found->second;
  const auto told = read_promise(words);
  if (told == PromiseTold::kNothing)
    return violated_("undone-promise",
                     fmt::format("of the promise of task {} is told '{}'", task.id, words));
  if (!may_become(known.told, told))
    violated_("undone-promise",
              fmt::format("the promise of task {} was told to be '{}', and is '{}' now", task.id,
                          known.words.empty() ? "made" : known.words, words));
  if (known.told == told && !known.words.empty()) return;
  tell_(fmt::format("the promise of task {} is told to be {}", task.id, words));
  known.told = told;
  known.words = words;
  if (task.state == TaskState::kSucceeded) check_end(task, known);
}

void Promises::check_end(const Task& task, const Known& known) {
  const auto done = done_.find({task.id, task.attempt});
  if (done == done_.end() || unsure_ns_ >= known.asked_ns) return;
  if (known.told == PromiseTold::kKept) check_kept(task.id, known, done->second);
  if (known.told == PromiseTold::kBroken) check_broken(task.id, known, done->second);
}

void Promises::check_kept(uint64_t task, const Known& known, const Done& done) {
  const int64_t late_ns = done.at_ns - known.taken_ns - stood_since_ns(known.asked_ns) -
                          known.spec.share.promise_ms * kMsNs - kSlackNs;
  if (late_ns > 0)
    violated_("false-verdict", fmt::format("the promise of task {} is told to be '{}', and it was "
                                           "done {:.1f} s too late",
                                           task, known.words, seconds(late_ns)));
}

void Promises::check_broken(uint64_t task, const Known& known, const Done& done) {
  const int64_t promise_ns = known.spec.share.promise_ms * kMsNs;
  const int64_t left_ns = known.asked_ns + promise_ns - done.at_ns - kSlackNs;
  const auto still = still_.find(done.node);
  const bool is_told_later = still != still_.end() && still->second >= done.at_ns;
  bool writes = false;  // what it wrote is taken over after its end
  for (const auto& use : known.spec.datasets) writes = writes || use.write;
  if (left_ns > 0 && !is_told_later && !writes)
    violated_("false-verdict", fmt::format("the promise of task {} is told to be '{}', and it was "
                                           "done {:.1f} s before it was due",
                                           task, known.words, seconds(left_ns)));
  const int64_t late_ns = done.at_ns - known.taken_ns - promise_ns - kStartNs;
  if (late_ns > 0 && known.spec.datasets.empty() && is_undisturbed_since(known.asked_ns))
    violated_("broken-promise",
              fmt::format("the promise of task {} is {:.1f} s late, and nothing had failed", task,
                          seconds(late_ns)));
}

int64_t Promises::stood_since_ns(int64_t since_ns) const {
  int64_t stood_ns = 0;
  for (auto pause = stood_.lower_bound(since_ns); pause != stood_.end(); ++pause)
    stood_ns += pause->second;
  return stood_ns;
}

bool Promises::is_on_trial(uint64_t task) const {
  const auto found = promises_.find(task);
  return found != promises_.end() && found->second.told == PromiseTold::kOnTrial;
}

}  // namespace tierpilot::dst
