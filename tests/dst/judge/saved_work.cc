#include "tests/dst/judge/saved_work.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::dst {
namespace {

constexpr int64_t kMsNs = 1'000'000;
// By the coordinator's clock, which may run fast.
constexpr int64_t kGraceNs = kPreemptionGraceMs * kMsNs * 99 / 100;
// One that was on its way to the coordinator when it decided counts too.
constexpr int64_t kOnItsWayNs = 3'000 * kMsNs;
// Whoever runs this long has been heard of, and has work to lose.
constexpr int64_t kYoungNs = 2'000 * kMsNs;

std::string in_words(const std::optional<CheckpointName>& name) {
  return name ? to_string(*name) : "nothing";
}

}  // namespace

void SavedWork::saved(const CheckpointName& name, Digest content, int64_t now_ns, bool is_told) {
  tell_(fmt::format("{} is saved", to_string(name)));
  saved_[name] = {content, now_ns, is_told};
}

void SavedWork::removed(const CheckpointName& name) {
  if (removed_.insert(name).second) tell_(fmt::format("{} is told to be removed", to_string(name)));
}

void SavedWork::spoil(const std::string& dataset) {
  if (const auto name = parse_checkpoint_name(dataset)) spoilt_.insert(*name);
}

std::optional<CheckpointName> SavedWork::newest_safe(uint64_t job) const {
  const auto end = safe_.lower_bound({job + 1, 0, 0});
  if (end == safe_.begin()) return std::nullopt;
  const auto& newest = *std::prev(end);
  if (newest.task != job || is_removed(newest)) return std::nullopt;
  // It, or a later one which it has made room for.
  const auto spoilt = spoilt_.lower_bound(newest);
  if (spoilt != spoilt_.end() && spoilt->task == job) return std::nullopt;
  return newest;
}

// Where tries have saved the same one, it may be that of any of them.
void SavedWork::told_safe(uint64_t job, uint64_t iteration) {
  const auto at = std::find_if(saved_.lower_bound({job, 0, 0}), saved_.end(), [&](const auto& one) {
    return one.first.task != job || one.first.iteration == iteration;
  });
  if (at == saved_.end() || at->first.task != job)
    return violated_("old-checkpoint",
                     fmt::format("job {} is told that iteration {} is safe, which it never saved",
                                 job, iteration));
  if (safe_.insert(at->first).second)
    tell_(fmt::format("{} is told to be safe", to_string(at->first)));
}

std::vector<CheckpointName> SavedWork::of(uint64_t job) const {
  std::vector<CheckpointName> names;
  for (auto at = saved_.lower_bound({job, 0, 0}); at != saved_.end() && at->first.task == job; ++at)
    names.push_back(at->first);
  return names;
}

bool SavedWork::is_told(const CheckpointName& name) const {
  const auto found = saved_.find(name);
  return found != saved_.end() && found->second.is_told;
}

Digest SavedWork::content(const CheckpointName& name) const {
  const auto found = saved_.find(name);
  return found == saved_.end() ? 0 : found->second.content;
}

void SavedWork::placed(uint64_t job, uint32_t attempt, std::optional<CheckpointName> least,
                       const std::string& why) {
  tries_[{job, attempt}] = {least, why};
  if (least)
    tell_(
        fmt::format("attempt {} of job {} is placed: {} {}", attempt, job, to_string(*least), why));
}

void SavedWork::given(const CheckpointName& name, Digest content) {
  const auto known = saved_.find(name);
  if (known == saved_.end())
    violated_("wrong-checkpoint",
              fmt::format("{} is given to a job, and was never saved", to_string(name)));
  else if (known->second.content != content)
    violated_("wrong-checkpoint",
              fmt::format("{} is given to a job with other bytes", to_string(name)));
}

void SavedWork::began(uint64_t job, uint32_t attempt, const Begin& begin) {
  const auto& checkpoint = begin.checkpoint;
  const auto name = parse_checkpoint_name(checkpoint);
  auto& now = tries_[{job, attempt}];
  if (!now.begin) tell_(fmt::format("job {} begins from {}", job, in_words(name)));
  if (now.begin && now.begin->checkpoint != checkpoint)
    violated_("wrong-checkpoint",
              fmt::format("ranks of attempt {} of job {} begin from {} and from {}", attempt, job,
                          in_words(parse_checkpoint_name(now.begin->checkpoint)), in_words(name)));
  if (!now.begin) now.begin = begin;
  if (name && is_removed(*name))
    violated_("wrong-checkpoint",
              fmt::format("job {} begins from {}, which was told to be removed", job, checkpoint));
  if (name && (name->task != job || name->attempt >= attempt))
    violated_("wrong-checkpoint",
              fmt::format("attempt {} of job {} begins from {}", attempt, job, checkpoint));
  if (now.least && (!name || *name < *now.least))
    violated_("old-checkpoint",
              fmt::format("attempt {} of job {} begins from {}, where {} {}", attempt, job,
                          in_words(name), to_string(*now.least), now.why));
}

void SavedWork::asked(AttemptId attempt, const Connection& over, int64_t now_ns) {
  tell_(fmt::format("task {} attempt {} is asked for a checkpoint", attempt.task, attempt.attempt));
  asked_[attempt].at_ns.emplace(over, now_ns);
}

void SavedWork::heard(AttemptId attempt, int64_t now_ns) {
  auto& known = asked_[attempt].heard_ns;
  if (!known) known = now_ns;
}

bool SavedWork::has_saved_since(AttemptId attempt, int64_t since_ns) const {
  for (auto at = saved_.lower_bound({attempt.task, attempt.attempt, 0});
       at != saved_.end() && at->first.task == attempt.task; ++at)
    if (at->first.attempt == attempt.attempt && at->second.at_ns >= since_ns) return true;
  return false;
}

void SavedWork::preempted(AttemptId attempt, const Connection& over, int64_t now_ns) {
  tell_(fmt::format("task {} attempt {} is told to give its share up", attempt.task,
                    attempt.attempt));
  const auto& begin = tries_[{attempt.task, attempt.attempt}].begin;
  if (!begin || !begin->saves || now_ns - begin->at_ns < kYoungNs) return;
  const auto& asked = asked_[attempt];
  const auto same = asked.at_ns.find(over);
  int64_t first_ns = now_ns;
  for (const auto& [connection, at_ns] : asked.at_ns) first_ns = std::min(first_ns, at_ns);
  const bool had_time = (same != asked.at_ns.end() && now_ns - same->second >= kGraceNs) ||
                        (asked.heard_ns && now_ns - *asked.heard_ns >= kGraceNs);
  if (had_time || has_saved_since(attempt, first_ns - kOnItsWayNs)) return;
  violated_("short-grace",
            fmt::format("task {} attempt {} is told to give its share up, has saved nothing, and "
                        "was {}",
                        attempt.task, attempt.attempt,
                        asked.at_ns.empty()
                            ? "never asked to"
                            : fmt::format("asked to {} ms before", (now_ns - first_ns) / kMsNs)));
}

}  // namespace tierpilot::dst
