#include "policies/quality/guarded_allocator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "policies/quality/fair_share.h"
#include "policies/quality/gain_curve.h"

namespace tierpilot::quality {
namespace {

// What one job was given and has lost, in a block.
struct Account {
  double seen_s = 0, loss = 0, iterations = 0;  // when it was last looked at
  double speed = 0, equal_speed = 0;            // of what it has since
  double gain = 0, equal_gain = 0;              // foretold for what it has since
  double lost = 0, done = 0, equal_done = 0;    // in this block
  double foretold = 0, equal_foretold = 0;      // in this block
};

// What one block tells: normalised losses that were lost, and that equal shares would have.
struct Block {
  double lost = 0, equal = 0;
};

double ratio_of(const Account& account) {
  const double by_iterations = account.equal_done / account.done;
  const double by_prediction =
      account.foretold > 0 ? account.equal_foretold / account.foretold : by_iterations;
  return std::clamp(by_prediction, std::min(1.0, by_iterations), std::max(1.0, by_iterations));
}

class Guarded : public Allocator {
 public:
  Guarded(std::unique_ptr<Allocator> guarded, const GuardSettings& settings)
      : guarded_(std::move(guarded)), settings_(settings) {}

  std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) override {
    const auto equal = fair_shares(jobs, cores.total, true);
    for (const auto& job : jobs) look_back(job, cores.now_s);
    if (cores.now_s - block_began_s_ >= std::max(settings_.block_s, cores.period_s))
      end_block(cores.now_s);
    const auto given = falls_back() ? equal : guarded_->allocate(jobs, cores);
    for (size_t i = 0; i < jobs.size(); ++i) look_ahead(jobs[i], given[i], equal[i], cores);
    return given;
  }

  std::string reason(std::string_view family) const override { return guarded_->reason(family); }
  std::string hindrance() const override {
    return falls_back() ? "equal shares: they would have lowered the losses more than what it chose"
                        : "";
  }

 private:
  bool falls_back() const { return blocks_of_fallback_ > 0; }

  void look_back(const JobState& job, double now_s) {
    const auto found = accounts_.find(job.id);
    if (found == accounts_.end() || job.reports == 0 || job.largest_change <= 0) return;
    auto& account = found->second;
    const double done = job.iterations - account.iterations;
    // It went back to a checkpoint, or was not heard of.
    if (done <= 0 || now_s <= account.seen_s || account.speed <= 0) return;
    account.lost += job.weight * (account.loss - job.newest_loss) / job.largest_change;
    account.done += done;
    account.equal_done += done * account.equal_speed / account.speed;
    account.foretold += account.gain;
    account.equal_foretold += account.equal_gain;
  }

  void look_ahead(const JobState& job, double given, double equal, const Cores& cores) {
    if (job.id == 0 || job.reports == 0) return;
    auto& account = accounts_[job.id];
    account.seen_s = cores.now_s;
    account.loss = job.newest_loss;
    account.iterations = job.iterations;
    account.speed = iterations_in(job, 1, given);
    account.equal_speed = iterations_in(job, 1, equal);
    account.gain = std::max(predicted_gain(job, cores.period_s, given, 0), 0.0);
    account.equal_gain = std::max(predicted_gain(job, cores.period_s, equal, 0), 0.0);
  }

  void end_block(double now_s) {
    Block block;
    std::erase_if(accounts_, [&](const auto& item) {
      return item.second.seen_s < block_began_s_;  // it has ended
    });
    for (auto& [id, account] : accounts_) {
      if (account.done > 0) {
        block.lost += account.lost;
        block.equal += account.lost * ratio_of(account);
      }
      account.lost = account.done = account.equal_done = 0;
      account.foretold = account.equal_foretold = 0;
    }
    const bool first = block_began_s_ == kNever;
    block_began_s_ = now_s;
    if (first) return;
    if (falls_back()) {
      --blocks_of_fallback_;
      return;
    }
    blocks_.push_back(block);
    if (blocks_.size() > settings_.most_blocks) blocks_.pop_front();
    if (equal_is_better()) fall_back();
  }

  bool equal_is_better() const {
    const auto count = static_cast<double>(blocks_.size());
    if (blocks_.size() < settings_.least_blocks) return false;
    double sum = 0, squares = 0, lost = 0;
    for (const auto& block : blocks_) {
      const double more = block.equal - block.lost;
      sum += more;
      squares += more * more;
      lost += std::abs(block.lost);
    }
    const double mean = sum / count;
    const double variance = std::max(squares / count - mean * mean, 0.0) / (count - 1);
    return sum > settings_.worse_by * lost && mean > settings_.sure_at * std::sqrt(variance);
  }

  void fall_back() {
    blocks_.clear();
    blocks_of_fallback_ = next_fallback_ == 0 ? settings_.fallback_blocks : next_fallback_;
    next_fallback_ = std::min(2 * blocks_of_fallback_, settings_.most_fallback_blocks);
  }

  static constexpr double kNever = -1e300;

  std::unique_ptr<Allocator> guarded_;
  GuardSettings settings_;
  std::map<uint64_t, Account> accounts_;
  std::deque<Block> blocks_;
  double block_began_s_ = kNever;
  size_t blocks_of_fallback_ = 0;
  size_t next_fallback_ = 0;
};

}  // namespace

std::unique_ptr<Allocator> make_guarded(std::unique_ptr<Allocator> guarded,
                                        const GuardSettings& settings) {
  return std::make_unique<Guarded>(std::move(guarded), settings);
}

}  // namespace tierpilot::quality
