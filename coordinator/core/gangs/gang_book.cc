#include "coordinator/core/gangs/gang_book.h"

#include <algorithm>

namespace tierpilot {
namespace {

constexpr double kNsPerHour = 3.6e12;
// Who runs longer than was estimated does not end at once.
constexpr double kLeastShareLeft = 0.1;
// Its end takes some time, too.
constexpr double kLastOfIterations = 1e-3;

}  // namespace

void RecentMean::add(double value) {
  constexpr uint32_t kMost = 20;
  count_ = std::min(count_ + 1, kMost);
  mean_ += (value - mean_) / count_;
}

const GangBook::Work* GangBook::find(uint64_t gang) const {
  const auto found = works_.find(gang);
  return found == works_.end() ? nullptr : &found->second;
}

void GangBook::began(uint64_t gang, const std::string& checkpoint, int64_t now_ns) {
  const double before_h = run_h(gang, checkpoint);
  Work& work = works_[gang];
  work.began_ns = now_ns;
  work.before_h = before_h;
}

void GangBook::stopped(uint64_t gang) {
  if (const auto found = works_.find(gang); found != works_.end()) found->second.began_ns = 0;
}

void GangBook::saved(const CheckpointName& checkpoint, int64_t now_ns) {
  const auto found = works_.find(checkpoint.task);
  if (found == works_.end() || found->second.began_ns == 0) return;
  Work& work = found->second;
  const double since_h = static_cast<double>(now_ns - work.began_ns) / kNsPerHour;
  work.run_h.emplace(checkpoint, work.before_h + since_h);
  if (work.run_h.size() > kMostCheckpoints) work.run_h.erase(work.run_h.begin());
}

void GangBook::stalled(uint64_t gang, double hours) {
  checkpoint_h_.add(hours);
  const auto found = works_.find(gang);
  if (found == works_.end()) return;
  found->second.checkpoint_h.add(hours);
  found->second.stalled_h += hours;
}

void GangBook::told_iterations(uint64_t gang, uint64_t iterations) {
  if (iterations > 0) works_[gang].iterations = iterations;
}

void GangBook::want(uint64_t gang, uint32_t ranks, std::string why) {
  works_[gang].wanted = {ranks, std::move(why)};
}

GangBook::Wanted GangBook::wanted(uint64_t gang) const {
  const Work* work = find(gang);
  return work ? work->wanted : Wanted{};
}

double GangBook::run_h(uint64_t gang, const std::string& checkpoint) const {
  const Work* work = find(gang);
  const auto name = parse_checkpoint_name(checkpoint);
  if (!work || !name) return 0;
  const auto at = work->run_h.find(*name);
  return at == work->run_h.end() ? 0 : at->second;
}

double GangBook::run_h_since_begin(uint64_t gang, int64_t now_ns) const {
  const Work* work = find(gang);
  return work && work->began_ns > 0 ? static_cast<double>(now_ns - work->began_ns) / kNsPerHour : 0;
}

double GangBook::stalled_h(uint64_t gang) const {
  const Work* work = find(gang);
  return work ? work->stalled_h : 0;
}

double GangBook::share_done(uint64_t gang, const std::string& checkpoint) const {
  const Work* work = find(gang);
  if (!work || work->iterations == 0) return -1;
  const auto name = parse_checkpoint_name(checkpoint);
  if (!name) return 0;
  return std::min(static_cast<double>(name->iteration) / static_cast<double>(work->iterations),
                  1.0);
}

double GangBook::left_h(uint64_t gang, double estimate_h, const std::string& checkpoint) const {
  if (const double done = share_done(gang, checkpoint); done >= 0)
    return estimate_h * std::max(1 - done, kLastOfIterations);
  return std::max(estimate_h - run_h(gang, checkpoint), kLeastShareLeft * estimate_h);
}

gang::Costs GangBook::costs(uint64_t gang, gang::Costs unmeasured) const {
  const Work* work = find(gang);
  unmeasured.checkpoint_h = checkpoint_h_.or_else(unmeasured.checkpoint_h);
  if (work) unmeasured.checkpoint_h = work->checkpoint_h.or_else(unmeasured.checkpoint_h);
  unmeasured.restart_h = restart_h_.or_else(unmeasured.restart_h);
  return unmeasured;
}

}  // namespace tierpilot
