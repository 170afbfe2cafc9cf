#include "coordinator/core/elastic/gang_growth.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/elastic/lent_ranks.h"
#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/gangs/gang_plan.h"

namespace tierpilot {
namespace {

constexpr int64_t kNsPerS = 1'000'000'000;
constexpr int64_t kCheckpointWithinNs = 60 * kNsPerS;
constexpr int64_t kCopiedWithinNs = 2 * kCheckpointWithinNs;
constexpr int64_t kWaitedForNs = 10 * kNsPerS;  // then lent ranks are given back
constexpr double kSecondsPerHour = 3600;

bool may_grow(const Task& gang) {
  return gang.spec.is_gang() && gang.spec.gang.max_ranks > gang.spec.gang.ranks;
}

}  // namespace

void GangGrowth::reported(const Task& rank, const JobPoint& report) {
  if (!rank.rank || rank.rank->rank != 0) return;
  const auto* gang = state_.tasks.find(rank.rank->gang);
  const auto* node = state_.registry.find(rank.node);
  if (!gang || !node || !may_grow(*gang)) return;
  auto& job = jobs_.try_emplace(gang->id, gang->spec).first->second;
  job.rank_cores = (report.milli_units > 0 ? report.milli_units / 1000.0 : gang->spec.units) *
                   node->facts.cores_per_unit();
  const auto ranks = static_cast<double>(state_.tasks.ranks_tried(*gang).size());
  const double cores = job.rank_cores * ranks;
  // Ranks wait for each other: all that they have is taken for used.
  JobPoint of_all = report;
  of_all.cpu_ns = static_cast<uint64_t>(static_cast<double>(report.at_ms) * 1e6 * cores);
  job.record->add(of_all, cores);
}

void GangGrowth::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  if (jobs_.empty() || now_ns < next_ns_) return;
  next_ns_ = now_ns + state_.settings.elastic_period_ms * 1'000'000;
  std::erase_if(jobs_, [&](const auto& item) {
    const auto* gang = state_.tasks.find(item.first);
    return !gang || is_ended(gang->state);
  });
  for (auto& [id, job] : jobs_)
    if (auto* gang = state_.tasks.find(id); gang->state == TaskState::kRunning)
      job.asked.ranks > 0 ? look_for_checkpoint(*gang, job) : look_at(*gang, job);
}

quality::WidthChoice GangGrowth::choose(const Task& gang, const Job& job) const {
  const auto ranks = static_cast<uint32_t>(state_.tasks.ranks_tried(gang).size());
  const uint64_t room = ranks + idle_ranks(state_, gang);
  quality::JobState state;
  state.cores = job.rank_cores * ranks;
  state.max_cores = job.rank_cores * gang.spec.gang.most_ranks();
  job.record->describe(state);
  const auto costs = state_.gangs.costs(gang.id, state_.settings.gang_costs);
  return quality::choose_width(
      state, ranks, static_cast<uint32_t>(std::min<uint64_t>(room, gang.spec.gang.most_ranks())),
      (costs.restart_h + costs.checkpoint_h) * kSecondsPerHour,
      {.horizon_s = static_cast<double>(state_.settings.elastic_horizon_ms) / 1e3});
}

void GangGrowth::look_at(Task& gang, Job& job) {
  const int64_t now_ns = state_.clock.boot_ns();
  if (gives_back(gang, job)) return;
  const auto ranks = state_.tasks.ranks_tried(gang).size();
  if (ranks >= gang.spec.gang.most_ranks()) return void(job.reason = "it has as many as it may");
  if (now_ns < job.not_before_ns) return;
  if (job.reason = job.record->not_foretold(); !job.reason.empty()) return;
  if (others_wait_for_units(state_) || !state_.tasks.shared_queue().empty())
    return void(job.reason = "others wait for units");
  const auto choice = choose(gang, job);
  if (choice.ranks <= ranks) {
    job.reason = fmt::format(
        "more would not pay for a restart: {:.2g} % of its loss is foretold "
        "to go in {} s as it is",
        100 * choice.gain_as_now, state_.settings.elastic_horizon_ms / 1000);
    return;
  }
  ask(gang, job, choice);
}

bool GangGrowth::gives_back(const Task& gang, Job& job) {
  const int64_t now_ns = state_.clock.boot_ns();
  const uint32_t waited_for = lent_ranks_waited_for(state_, gang);
  if (waited_for == 0) job.waited_for_ns = 0;
  if (waited_for == 0) return false;
  if (job.waited_for_ns == 0) job.waited_for_ns = now_ns;
  // Another one gives back for them, or has just done so.
  if (now_ns - job.waited_for_ns < kWaitedForNs || now_ns < next_gives_back_ns_) return false;
  next_gives_back_ns_ = now_ns + kCheckpointWithinNs;
  job.waited_for_ns = now_ns + kCheckpointWithinNs;  // where it takes none, it is asked again then
  const auto ranks = static_cast<uint32_t>(state_.tasks.ranks_tried(gang).size());
  ask(gang, job, {.ranks = ranks - waited_for});
  return true;
}

void GangGrowth::ask(const Task& gang, Job& job, const quality::WidthChoice& choice) {
  job.asked = choice;
  job.asked_attempt = gang.attempt;
  job.asked_ns = state_.clock.boot_ns();
  job.newest = last_checkpoint(state_, gang.id);
  job.reason = fmt::format("asked for a checkpoint, to begin again with {}", choice.ranks);
  hooks_.ask_checkpoint(gang.id, fmt::format("it may begin again with {} ranks", choice.ranks));
}

std::string GangGrowth::why(const Task& gang, const quality::WidthChoice& asked) const {
  if (asked.ranks < state_.tasks.ranks_tried(gang).size())
    return fmt::format("others wait for what it has beyond its {}", gang.spec.gang.ranks);
  return fmt::format(
      "{:.2g} % of its loss is foretold to go in {} s, {:.2g} % with the ranks it had",
      100 * asked.gain, state_.settings.elastic_horizon_ms / 1000, 100 * asked.gain_as_now);
}

void GangGrowth::look_for_checkpoint(Task& gang, Job& job) {
  const int64_t now_ns = state_.clock.boot_ns();
  const auto asked = std::exchange(job.asked, {});
  if (gang.attempt != job.asked_attempt) return;
  const bool gives_back = asked.ranks < state_.tasks.ranks_tried(gang).size();
  if (gives_back && lent_ranks_waited_for(state_, gang) == 0) return;  // nobody waits any more
  const bool taken = last_checkpoint(state_, gang.id) > job.newest;
  const int64_t asked_for_ns = now_ns - job.asked_ns;
  const bool too_late = asked_for_ns >= (taken ? kCopiedWithinNs : kCheckpointWithinNs);
  // A node that is lost meanwhile would take its only copy along also if it went on.
  const bool with_one_copy = taken && gives_back && too_late;
  if (last_safe_checkpoint(state_, gang.id) > job.newest || with_one_copy) {
    // Whether or not it comes to run wider: not before it has shown what that brings.
    job.not_before_ns = now_ns + state_.settings.elastic_horizon_ms * 1'000'000;
    job.reason = "it has begun again just now; what that brings is to be seen first";
    if (gives_back) next_gives_back_ns_ = now_ns + kCheckpointWithinNs;
    return hooks_.begin_again(gang, asked.ranks, why(gang, asked));
  }
  if (!too_late) return void(job.asked = asked);
  job.not_before_ns = now_ns + state_.settings.elastic_horizon_ms * 1'000'000;
  job.reason = fmt::format("it was asked for a checkpoint and {}: it cannot begin again with {}",
                           taken ? "no second node has got a copy of it" : "took none",
                           gives_back ? "fewer, for which others wait" : "more");
}

std::string GangGrowth::reason_of(const Task& gang) const {
  if (!may_grow(gang) || gang.state != TaskState::kRunning) return {};
  const auto found = jobs_.find(gang.id);
  return found == jobs_.end() ? "it has reported nothing" : found->second.reason;
}

}  // namespace tierpilot
