#include "daemon/agent/gpus/gpu_schedule.h"

#include <algorithm>
#include <utility>

namespace tierpilot::agent {
namespace {

// One look of which the driver tells nothing need not mean more; they are a quarter of a second
// apart.
constexpr int64_t kSamplesCeased_ns = 2'000'000'000;

}  // namespace

void GpuSchedule::set(AttemptId attempt, uint32_t milli) {
  auto& member = members_[attempt];
  member.milli = milli;
  member.by_clock = false;
  place(attempt, member);
}

void GpuSchedule::set_beside(AttemptId attempt, uint32_t milli) {
  auto& member = members_[attempt];
  member.milli = milli;
  member.by_clock = true;
  place(attempt, member);
}

void GpuSchedule::remove(AttemptId attempt) {
  exclusive_.remove(attempt);
  members_.erase(attempt);
}

void GpuSchedule::place(AttemptId attempt, Member& member) {
  if (is_exclusive(member)) {
    member.own.remove(attempt);
    exclusive_.set(attempt, member.milli);
    return;
  }
  exclusive_.remove(attempt);
  member.own.advance(now_ns_);
  member.own.set(attempt, member.by_clock ? member.milli : member.demand.turns_milli(member.milli));
}

void GpuSchedule::advance(int64_t now_ns) {
  const int64_t since_ns = now_ns_ == 0 ? 0 : now_ns - now_ns_;
  for (auto& [attempt, member] : members_)
    if (runs(attempt)) member.ran_ns += since_ns;
  now_ns_ = now_ns;
  exclusive_.advance(now_ns);
  for (auto& [attempt, member] : members_) member.own.advance(now_ns);
}

bool GpuSchedule::runs(AttemptId attempt) const {
  const auto found = members_.find(attempt);
  if (found == members_.end()) return false;
  const auto& own = found->second.own;
  return (own.empty() ? exclusive_ : own).runs() == attempt;
}

int64_t GpuSchedule::next_ns() const {
  int64_t next_ns = exclusive_.next_ns();
  for (const auto& [attempt, member] : members_) next_ns = std::min(next_ns, member.own.next_ns());
  return next_ns;
}

// While the member ran: of those that may run at the same time.
GpuDemand::Use GpuSchedule::others(const Member& member,
                                   const std::map<AttemptId, int64_t>& used_ns,
                                   int64_t since_ns) const {
  GpuDemand::Use all;
  for (const auto& [attempt, other] : members_) {
    if (&other == &member || (is_exclusive(other) && is_exclusive(member))) continue;
    const auto told = used_ns.find(attempt);
    all.ran_ns += other.ran_ns;
    all.used_ns += told == used_ns.end() ? 0 : told->second;
  }
  const double part =
      since_ns > 0 ? static_cast<double>(member.ran_ns) / static_cast<double>(since_ns) : 0;
  const auto in_part = [part](int64_t ns) {
    return static_cast<int64_t>(static_cast<double>(ns) * part);
  };
  return {in_part(all.ran_ns), in_part(all.used_ns)};
}

void GpuSchedule::used(const std::map<AttemptId, int64_t>& used_ns) {
  unmeasured_since_ns_.reset();
  const int64_t since_ns = now_ns_ - std::exchange(told_ns_, now_ns_);
  std::map<AttemptId, GpuDemand::Use> beside;
  for (const auto& [attempt, member] : members_)
    beside[attempt] = others(member, used_ns, since_ns);
  for (auto& [attempt, member] : members_) {
    const auto told = used_ns.find(attempt);
    const int64_t own_ns = told == used_ns.end() ? 0 : told->second;
    if (is_exclusive(member)) {
      exclusive_.others_used(attempt, beside[attempt].used_ns);
      exclusive_.used(attempt, own_ns);
    }
    member.demand.add({std::exchange(member.ran_ns, 0), own_ns}, beside[attempt]);
    place(attempt, member);
  }
}

void GpuSchedule::unmeasured() {
  if (!unmeasured_since_ns_) unmeasured_since_ns_ = told_ns_;
  told_ns_ = now_ns_;
  exclusive_.unmeasured();
  const bool ceased = now_ns_ - *unmeasured_since_ns_ >= kSamplesCeased_ns;
  for (auto& [attempt, member] : members_) {
    if (ceased) member.demand = {};
    member.ran_ns = 0;
    place(attempt, member);
  }
}

}  // namespace tierpilot::agent
