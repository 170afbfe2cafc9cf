#include "daemon/agent/gpus/gpu_demand.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::agent {
namespace {

constexpr double kWholeGpu = 1000;
constexpr double kSaturates = 0.65, kCeases = 0.5;
constexpr double kAnyNumber = 1e9;
constexpr int64_t kEnough_ns = 1'000'000'000;
// Without a sample for so long it computed nothing: they are a second apart at most.
constexpr int64_t kLongestLump_ns = 1'500'000'000;
// Shares that are predicted are what is used just so.
constexpr double kSlack = 1.05;
// Who was guessed to saturate the GPU, and did not, is not soon again.
constexpr int64_t kShortestPause_ns = 5'000'000'000, kLongestPause_ns = 60'000'000'000;

}  // namespace

void GpuDemand::Window::add(const Use& own, const Use& others) {
  const auto more = [kept = std::exp(-static_cast<double>(own.ran_ns) / length_ns)](
                        double& sum, int64_t ns) { sum = sum * kept + static_cast<double>(ns); };
  more(ran_ns, own.ran_ns);
  more(used_ns, own.used_ns);
  more(others_ran_ns, others.ran_ns);
  more(others_used_ns, others.used_ns);
}

double GpuDemand::Window::demand() const {
  return ran_ns > 0 ? std::min(1.0, used_ns / ran_ns) : 0;
}

// It waited while others computed, and, as the driver's slices are equal, for each of them no
// longer than it computed itself.
double GpuDemand::Window::demand_alone(double most_others) const {
  if (ran_ns <= 0) return 0;
  const double all_ns = std::max(ran_ns, used_ns + others_used_ns);
  const double others = std::min(most_others, others_ran_ns / ran_ns);
  return std::min(1.0, used_ns / (all_ns - std::min(others * used_ns, others_used_ns)));
}

void GpuDemand::add(const Use& own, const Use& others) {
  own_.ran_ns += own.ran_ns;
  own_.used_ns += own.used_ns;
  others_.ran_ns += others.ran_ns;
  others_.used_ns += others.used_ns;
  if (own.used_ns == 0 && own_.ran_ns < kLongestLump_ns) return;
  if (begun_) {  // what the first sample is about began before anybody looked
    lately_.add(own_, others_);
    longer_.add(own_, others_);
    judge(own_.ran_ns);
  }
  begun_ = true;
  own_ = others_ = {};
}

void GpuDemand::judge(int64_t ran_ns) {
  measured_ns_ += ran_ns;
  if (measured_ns_ < kEnough_ns) return;
  if (saturates_) {
    if (lately_.demand_alone(1) >= kCeases) return;
    if (guessed_) pause_ns_ = std::clamp(2 * pause_ns_, kShortestPause_ns, kLongestPause_ns);
    return change();
  }
  const bool seen = lately_.demand() >= kSaturates;
  const bool guessed = lately_.demand_alone(kAnyNumber) >= kSaturates && measured_ns_ >= pause_ns_;
  if (!seen && !guessed) return;
  guessed_ = !seen;
  if (seen) pause_ns_ = 0;
  change();
}

void GpuDemand::change() {
  saturates_ = !saturates_;
  measured_ns_ = 0;
  lately_ = {.length_ns = kLately_ns};
}

// Who uses more at one time and less at another is not stopped for the one, and goes on at once
// with the other.
uint32_t GpuDemand::turns_milli(uint32_t milli) const {
  const double demand = longer_.demand();
  if (std::min(demand, lately_.demand()) * kWholeGpu <= kSlack * milli) return 1000;
  return static_cast<uint32_t>(std::clamp(milli / demand, 1.0, kWholeGpu));
}

}  // namespace tierpilot::agent
