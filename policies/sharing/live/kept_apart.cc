#include "policies/sharing/live/kept_apart.h"

#include <fmt/format.h>

#include "policies/sharing/live/needed_share.h"

namespace tierpilot::sharing {
namespace {

constexpr double kLess = 0.9;  // each time: so it is a few times, however long a job runs

// Nothing is known by no name.
std::string name_apart(const Sharer& sharer, uint64_t id) {
  return sharer.name.empty() ? fmt::format("#{}", id) : sharer.name;
}

}  // namespace

void KeptApart::ended(const LiveJob& job, const LiveJob& slowed) {
  Pair pair{slowed.id, name_apart(job.sharer, job.id), measured(slowed.sharer, job.sharer),
            kLess * retained_(slowed.sharer, job.sharer).part()};
  const auto [begin, end] = of_slowed_.equal_range(slowed.id);
  for (auto at = begin; at != end; ++at) {
    auto& known = *at->second;
    if (known.name != pair.name) continue;
    if (known.measured == pair.measured) pair.borne = kLess * known.borne;
    known = std::move(pair);
    return;
  }
  remember(std::move(pair));
}

void KeptApart::remember(Pair pair) {
  pairs_.push_back(std::move(pair));
  of_slowed_.emplace(pairs_.back().slowed, std::prev(pairs_.end()));
  if (pairs_.size() <= kMost) return;
  auto oldest = of_slowed_.equal_range(pairs_.front().slowed).first;
  while (oldest->second != pairs_.begin()) ++oldest;
  of_slowed_.erase(oldest);
  pairs_.pop_front();
}

std::optional<uint64_t> KeptApart::on(const LiveUnit& unit, const WaitingJob& job) const {
  if (pairs_.empty() || job.job_class != JobClass::kBestEffort) return std::nullopt;
  for (const auto& other : unit.jobs) {
    const auto [begin, end] = of_slowed_.equal_range(other.id);
    for (auto at = begin; at != end; ++at) {
      const auto& pair = *at->second;
      if (pair.name == name_apart(job.sharer, job.id) &&
          pair.measured == measured(other.sharer, job.sharer) &&
          needed_speed(other.left_upper_s, other.promise_left_s) > pair.borne)
        return other.id;
    }
  }
  return std::nullopt;
}

uint32_t KeptApart::measured(const Sharer& slowed, const Sharer& by) const {
  const auto kept = retained_(slowed, by);
  return kept.by == KeptBy::kPair ? kept.measured : 0;
}

}  // namespace tierpilot::sharing
