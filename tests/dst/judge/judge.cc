#include "tests/dst/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::dst {

const std::vector<std::string>& invariant_names() {
  static const std::vector<std::string> names{
      "lost-submit",     "overlap",        "half-gang",      "lost-version",
      "few-copies",      "lone-write",     "two-values",     "lost-write",
      "came-back",       "node-fault",     "skew",           "stuck",
      "unbounded",       "crash",          "ran-again",      "undone-end",
      "lost-fault",      "fault-twice",    "too-soon",       "stale-read",
      "left-over",       "undone-promise", "old-checkpoint", "wrong-checkpoint",
      "lost-checkpoint", "short-grace",    "false-verdict",  "broken-promise",
      "undecided",       "over-unit",      "held-back",      "unsound-unit",
      "wrong-victim",    "over-room",      "out-of-turn",    "idle-room",
      "unfit-room"};
  return names;
}

int64_t runs_ms(const std::vector<std::string>& argv) {
  return std::stoll(argv.at(1));
}
int exits_with(const std::vector<std::string>& argv) {
  return std::stoi(argv.at(2));
}
int64_t saves_every_ms(const std::vector<std::string>& argv) {
  return argv.size() <= kSavesEvery ? 0 : std::stoll(argv[kSavesEvery]);
}
uint32_t needs_milli(const std::vector<std::string>& argv) {
  return argv.size() <= kNeedsMilli ? 0 : static_cast<uint32_t>(std::stoul(argv[kNeedsMilli]));
}
void set_argument(std::vector<std::string>& argv, size_t which, int64_t value) {
  if (argv.size() <= which) argv.resize(which + 1, "0");
  argv[which] = std::to_string(value);
}

void Judge::violated(const std::string& invariant, std::string what) {
  if (verdict_ || (!held_.empty() && !held_.contains(invariant))) return;
  verdict_ = Violation{invariant, std::move(what)};
}

void Judge::committed(const Run& run, const std::string& dataset, uint64_t version,
                      Digest content) {
  commits_[{run, dataset}] = {version, content};
  tell("n{} has version {} of {}, of task {} attempt {}", run.node + 1, version, dataset, run.task,
       run.attempt);
}

Digest Judge::published(const std::string& dataset, uint64_t version) const {
  const auto known = datasets_.find(dataset);
  if (known == datasets_.end()) return 0;
  const auto found = known->second.versions.find(version);
  return found == known->second.versions.end() ? 0 : found->second;
}

void Judge::read(const Run& run, const std::string& dataset, uint64_t version, Digest content) {
  if (const auto name = parse_checkpoint_name(dataset)) return saved_work_.given(*name, content);
  // Nobody hears of it any more, and the dataset is another one by now.
  const bool over = has_ended(run.task) || has_ended(processes_.gang_of(run.task));
  if (over && removed_.contains(dataset)) return;
  check_fresh(run, dataset, version);
  const Digest expected = published(dataset, version);
  if (expected != 0 && expected != content)
    violated("two-values",
             fmt::format("task {} attempt {} is given version {} of {} as of {}, which is that of "
                         "{}",
                         run.task, run.attempt, version, dataset, contents_.origin(content),
                         contents_.origin(expected)));
}

void Judge::publish(const std::string& dataset, uint64_t version, Digest content,
                    const std::string& by) {
  auto& known = datasets_[dataset];
  tell("version {} of {} is published, by {}", version, dataset, by);
  const auto [at, fresh] = known.versions.emplace(version, content);
  if (!fresh && at->second != content)
    violated("two-values",
             fmt::format("version {} of {} is that of {}, and now {} has succeeded with it too",
                         version, dataset, contents_.origin(at->second), by));
  if (fresh) on_published(dataset, version, content);
}

void Judge::dataset_added(const std::string& dataset, uint64_t version, Digest content) {
  // One that can be added anew was removed, although the answer to that was lost.
  if (const auto known = datasets_.find(dataset); known != datasets_.end() &&
                                                  (known->second.removing || known->second.lost) &&
                                                  published(dataset, version) != content) {
    was_removed(dataset);
  }
  publish(dataset, version, content, "a client");
}

void Judge::was_removed(const std::string& dataset) {
  datasets_.erase(dataset);
  ++removed_[dataset];
}

int Judge::removals(const std::string& dataset) const {
  const auto found = removed_.find(dataset);
  return found == removed_.end() ? 0 : found->second;
}

void Judge::check_fresh(const Run& run, const std::string& dataset, uint64_t version) {
  const auto gang = processes_.gang_of(run.task);
  const auto before = seen_.find(gang != 0 ? gang : run.task);
  const auto known = datasets_.find(dataset);
  if (before == seen_.end() || known == datasets_.end()) return;
  const auto seen = before->second.find(dataset);
  if (seen == before->second.end() || removals(dataset) != seen->second.removals) return;
  if (known->second.removing || known->second.lost || version >= seen->second.version) return;
  violated("stale-read",
           fmt::format("task {} attempt {} is given version {} of {}, and before it was submitted "
                       "version {} was published",
                       run.task, run.attempt, version, dataset, seen->second.version));
}

void Judge::removal_began(const std::string& dataset) {
  if (auto known = datasets_.find(dataset); known != datasets_.end()) known->second.removing = true;
}

void Judge::removal_ended(const std::string& dataset, bool removed) {
  tell("the removal of {} is answered: {}", dataset, removed ? "it is gone" : "refused");
  if (removed) {
    was_removed(dataset);
  } else if (auto known = datasets_.find(dataset); known != datasets_.end())
    known->second.removing = false;
}

void Judge::lost_by_damage(const std::string& dataset) {
  tell("the last copy of {} is lost", dataset);
  datasets_[dataset].lost = true;
}

bool Judge::is_lost(const std::string& dataset) const {
  const auto known = datasets_.find(dataset);
  return known != datasets_.end() && known->second.lost;
}

bool Judge::is_made_anew(const std::string& dataset, Digest content) const {
  const auto known = datasets_.find(dataset);
  return known != datasets_.end() && known->second.removing && contents_.was_made(dataset, content);
}

std::map<std::string, Judge::Value> Judge::current() const {
  std::map<std::string, Value> values;
  for (const auto& [name, known] : datasets_)
    if (const auto value = newest(name); value && !known.removing && !known.lost)
      values[name] = *value;
  return values;
}

std::optional<Judge::Value> Judge::newest(const std::string& dataset) const {
  const auto known = datasets_.find(dataset);
  if (known == datasets_.end() || known->second.versions.empty()) return std::nullopt;
  const auto& [version, content] = *known->second.versions.rbegin();
  return Value{version, content};
}

void Judge::check_writes(const std::string& dataset, Digest content) {
  if (is_lost(dataset)) return;
  for (const Digest write : datasets_[dataset].writes)
    if (!contents_.descends(content, write))
      violated("lost-write", fmt::format("{} succeeded in writing {}, and what is there now is "
                                         "without it: that of {}",
                                         contents_.origin(write), dataset,
                                         content ? contents_.origin(content) : "nobody"));
}

void Judge::unit_failed(const std::string& unit, const std::string& kind) {
  tell("unit {} has failed: {}", unit, kind);
  unit_faults_[{unit, kind}] = false;
}

void Judge::fault_acknowledged(const std::string& unit, const std::string& kind) {
  tell("{} of unit {} is acknowledged", kind, unit);
  unit_faults_[{unit, kind}] = true;
}

namespace {

std::string describe(const TaskSpec& spec) {
  std::string text = fmt::format("{} ms, exit code {}", runs_ms(spec.argv), exits_with(spec.argv));
  if (spec.is_gang()) text += fmt::format(", {} ranks", spec.gang.ranks);
  if (spec.is_shared())
    text += fmt::format(", {} thousandths of a {}, {}{} ms promised{}", spec.share.milli,
                        spec.has_gpu_share() ? "GPU" : "group of cores",
                        spec.share.latency_sensitive ? "latency-sensitive, " : "",
                        spec.share.promise_ms, spec.share.promise_on_trial ? " on trial" : "");
  if (spec.swap_room_bytes > 0)
    text += fmt::format(", {} MiB of room for swapping", spec.swap_room_bytes >> 20);
  for (const auto& use : spec.datasets)
    text += fmt::format(", {} {}", use.write ? "writes" : "reads", use.dataset);
  return text;
}

bool may_have_failed(const Task& task) {
  if (exits_with(task.spec.argv) != 0) return true;
  // After one that failed or was cancelled.
  return task.reason.starts_with("task ");
}

}  // namespace

std::map<std::string, Judge::Seen> Judge::seen() const {
  std::map<std::string, Seen> seen;
  for (const auto& [name, value] : current()) seen[name] = {value.version, removals(name)};
  return seen;
}

void Judge::acknowledged(const SubmitReceipt& receipt, const std::vector<TaskSpec>& specs,
                         const std::map<std::string, Seen>& before, int64_t asked_ns) {
  for (size_t i = 0; i < specs.size(); ++i) {
    tell("task {} is acknowledged: {}", receipt.first_task + i, describe(specs[i]));
    const auto [at, fresh] = tasks_.emplace(receipt.first_task + i, specs[i]);
    if (!fresh && at->second.name != specs[i].name)
      violated("lost-submit", fmt::format("task {} answers two requests", at->first));
    seen_.emplace(at->first, before);
    promises_.acknowledged(at->first, specs[i], asked_ns, now_ns());
    for (size_t parent = 0; parent < i; ++parent)
      if (std::ranges::count(specs[i].after, specs[parent].name) > 0)
        parents_[at->first].push_back(receipt.first_task + parent);
  }
}

void Judge::check_order(uint64_t task) {
  const auto parents = parents_.find(task);
  if (parents == parents_.end()) return;
  for (const auto parent : parents->second) {
    const auto& spec = tasks_.at(parent);
    const bool well = spec.is_gang() ? processes_.has_gang_ended_well(parent, spec.gang.ranks)
                                     : processes_.has_ended_well(parent);
    if (!well)
      violated("too-soon", fmt::format("task {} begins, and task {}, behind which it stands, has "
                                       "come to no good end yet",
                                       task, parent));
  }
}

void Judge::gives_way(uint64_t task) {
  const auto known = tasks_.find(task);
  if (known != tasks_.end() && known->second.share.latency_sensitive)
    violated("wrong-victim",
             fmt::format("task {} is latency-sensitive, and is to give its share up", task));
}

void Judge::ended(const Task& task) {
  const auto [known, is_new] = ends_.emplace(task.id, task.state);
  if (!is_new) {
    if (known->second != task.state)
      violated("undone-end",
               fmt::format("task {} was told to be {}, and is {} now", task.id,
                           task_state_name(known->second), task_state_name(task.state)));
    return;
  }
  if (task.state == TaskState::kSucceeded && !task.spec.is_gang() &&
      !processes_.has_ended_well(task.id, task.attempt))
    violated("lost-submit", fmt::format("task {} is told to have succeeded, and its attempt {} "
                                        "never came to a good end",
                                        task.id, task.attempt));
  tell("task {} is told to have ended: {}", task.id, task_state_name(task.state));
  if (task.state == TaskState::kFailed && !may_have_failed(task))
    violated("node-fault", fmt::format("task {} would have succeeded, and has failed for good: {}",
                                       task.id, task.reason));
  if (task.state == TaskState::kCancelled && !cancelled_.contains(task.id))
    violated("node-fault", fmt::format("task {} was cancelled, which nobody had asked for: {}",
                                       task.id, task.reason));
  const bool well = task.state == TaskState::kSucceeded;
  if (task.spec.is_gang())
    processes_.gang_ended(task.id, task.attempt, task.spec.gang.ranks, well, now_ns());
  if (!well) return;
  const Run run{task.id, task.attempt, task.node.empty() ? 0 : task.node[1] - '1'};
  for (const auto& use : task.spec.datasets) {
    if (!use.write) continue;
    const auto commit = commits_.find({run, use.dataset});
    const std::string by =
        fmt::format("task {} attempt {} on {}", task.id, task.attempt, task.node);
    if (commit == commits_.end()) {
      violated("lost-write", fmt::format("{} has succeeded and never wrote {}", by, use.dataset));
      continue;
    }
    datasets_[use.dataset].writes.push_back(commit->second.content);
    publish(use.dataset, commit->second.version, commit->second.content, by);
  }
}

}  // namespace tierpilot::dst
