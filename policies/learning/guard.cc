#include "policies/learning/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

// Shares of decisions that a policy on probation has, one after the other.
constexpr std::array kProbationShares{0.05, 0.1, 0.25, 0.5};
constexpr uint32_t kMostDoublings = 6;
// Below so many of the heuristic's outcomes a round is young.
constexpr uint64_t kYoungRound = 20;

template <class Enum, size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<size_t>(value));
}

std::string text_of(const MeanInterval& mean) {
  return mean.count ? fmt::format("{:.3f} [{:.3f}, {:.3f}] of {}", mean.mean, mean.low, mean.high,
                                  mean.count)
                    : "nothing measured";
}

constexpr std::array<std::string_view, 3> kModes{"shadow", "advise", "enforce"};

}  // namespace

std::string_view policy_mode_name(PolicyMode mode) {
  return name_in(kModes, mode);
}

std::optional<PolicyMode> policy_mode_from_name(std::string_view name) {
  const auto* found = std::find(kModes.begin(), kModes.end(), name);
  if (found == kModes.end()) return std::nullopt;
  return static_cast<PolicyMode>(found - kModes.begin());
}

std::string_view measure_name(JudgedBy measure) {
  return name_in(std::array<std::string_view, kMeasures>{"reward", "response"}, measure);
}

std::string_view standing_name(Standing standing) {
  return name_in(std::array<std::string_view, 3>{"trusted", "deposed", "probation"}, standing);
}

std::string_view arm_name(Arm arm) {
  return name_in(std::array<std::string_view, 4>{"policy", "control", "shadow", "alone"}, arm);
}

std::optional<double> RelativeResponse::of(double response_s, double estimate_s) {
  if (!std::isfinite(response_s) || response_s < 0 || !std::isfinite(estimate_s))
    return std::nullopt;
  const double quotient = response_s / (estimate_s > 0 ? estimate_s : 1);
  if (!std::isfinite(quotient)) return std::nullopt;
  if (count_ == 0) usual_ = quotient;
  const double relative = usual_ > 0 ? std::min(quotient / usual_, kMost) : 1;
  const double memory = 1.0 / static_cast<double>(std::min<uint64_t>(++count_, 256));
  usual_ += memory * (usual_ > 0 ? relative * usual_ - usual_ : quotient);
  return relative;
}

ArmComparison::ArmComparison(JudgedBy measure, const GuardSettings& settings)
    : measure_(measure),
      range_(measure == JudgedBy::kReward ? settings.reward_high - settings.reward_low
                                          : RelativeResponse::kMost),
      policy_(measure == JudgedBy::kReward ? settings.reward_low : 0,
              measure == JudgedBy::kReward ? settings.reward_high : RelativeResponse::kMost,
              settings.false_alarm),
      control_(policy_) {}

// Each interval misses on the side that matters with half of the chance.
bool ArmComparison::policy_is_worse() const {
  return measure_ == JudgedBy::kReward ? policy().high < control().low
                                       : policy().low > control().high;
}

double ArmComparison::advantage() const {
  const double difference = (policy().mean - control().mean) / range_;
  return measure_ == JudgedBy::kReward ? difference : -difference;
}

std::string ArmComparison::text() const {
  return fmt::format("{} {}, the heuristic's {}", measure_name(measure_), text_of(policy()),
                     text_of(control()));
}

Guard::Guard(const GuardSettings& settings, GuardMemory memory)
    : settings_(settings), memory_(std::move(memory)), round_(fresh_round()) {
  memory_.step = std::min<uint32_t>(memory_.step, kProbationShares.size() - 1);
  if (memory_.standing == Standing::kDeposed) memory_.setbacks = std::max(memory_.setbacks, 1U);
}

Guard::Round Guard::fresh_round() const {
  return {ArmComparison(JudgedBy::kReward, settings_),
          ArmComparison(JudgedBy::kResponse, settings_)};
}

double Guard::policy_share() const {
  if (memory_.mode == PolicyMode::kShadow) return 0;
  if (!settings_.on) return 1;
  if (memory_.standing == Standing::kDeposed) return 0;
  return memory_.standing == Standing::kTrusted ? 1 - settings_.control_share
                                                : kProbationShares.at(memory_.step);
}

Guard::Ticket Guard::next(double chance) const {
  if (memory_.mode == PolicyMode::kShadow) return {Arm::kShadow, era_};
  if (!settings_.on) return {Arm::kPolicy, era_};
  if (memory_.standing == Standing::kDeposed)
    return {chance < settings_.shadow_share ? Arm::kShadow : Arm::kAlone, era_};
  return {chance < policy_share() ? Arm::kPolicy : Arm::kControl, era_};
}

void Guard::answered(DecisionFault fault) {
  faulty_.set(next_answer_, fault != DecisionFault::kNone);
  next_answer_ = (next_answer_ + 1) % faulty_.size();
  if (!settings_.on || memory_.mode == PolicyMode::kShadow) return;
  const bool too_many = faulty_.count() >= settings_.faults_to_depose;
  if (memory_.standing != Standing::kDeposed) {
    if (too_many)
      depose(fmt::format("{} of its last {} answers could not be used", faulty_.count(),
                         faulty_.size()));
    return;
  }
  const uint64_t needed = settings_.shadow_answers
                          << std::min(memory_.setbacks - 1, kMostDoublings);
  if (++shadow_answers_ >= needed && !too_many) {
    memory_.step = 0;
    enter(Standing::kProbation, "on probation",
          fmt::format("{} answers in shadow, {} of the last {} bad", shadow_answers_,
                      faulty_.count(), faulty_.size()));
  }
}

void Guard::measured(JudgedBy measure, const Ticket& ticket, double value) {
  if (ticket.era != era_ || (ticket.arm != Arm::kPolicy && ticket.arm != Arm::kControl)) return;
  round_.at(static_cast<size_t>(measure)).add(ticket.arm == Arm::kPolicy, value);
  if (settings_.on && measure == settings_.judged) judge();
}

void Guard::judge() {
  const ArmComparison& now = round_.at(static_cast<size_t>(settings_.judged));
  if (now.policy_is_worse()) return depose("it is worse: " + now.text());
  if (memory_.standing == Standing::kProbation) {
    const bool enough =
        std::min(now.policy().count, now.control().count) >= settings_.step_outcomes;
    if (enough && now.advantage() >= -settings_.tolerance) {
      const std::string why = "it is no worse: " + now.text();
      if (memory_.step + 1 == kProbationShares.size())
        return enter(Standing::kTrusted, "trusted", why);
      ++memory_.step;
      return enter(Standing::kProbation, "share raised", why);
    }
  }
  if (now.control().count >= settings_.round_outcomes) end_round();
}

void Guard::end_round() {
  if (memory_.standing == Standing::kTrusted) memory_.setbacks = 0;
  last_round_ = std::exchange(round_, fresh_round());
}

void Guard::depose(std::string why) {
  ++memory_.setbacks;
  shadow_answers_ = 0;
  forget_faults();
  enter(Standing::kDeposed, "deposed", std::move(why));
}

void Guard::enter(Standing standing, std::string what, std::string why) {
  memory_.standing = standing;
  memory_.why = why;
  ++era_;
  last_round_ = std::exchange(round_, fresh_round());
  events_.push_back({std::move(what), std::move(why)});
}

void Guard::forget_faults() {
  faulty_.reset();
  next_answer_ = 0;
}

void Guard::set_mode(PolicyMode mode) {
  memory_.mode = mode;
  memory_.setbacks = 0;
  forget_faults();
  enter(Standing::kTrusted, "mode", fmt::format("'{}', by an operator", policy_mode_name(mode)));
  last_round_.reset();
}

void Guard::start_anew() {
  ++era_;
  forget_faults();
  round_ = fresh_round();
  last_round_.reset();
}

const ArmComparison& Guard::comparison(JudgedBy measure) const {
  const auto index = static_cast<size_t>(measure);
  const bool young = round_.at(index).control().count < kYoungRound;
  return young && last_round_ ? last_round_->at(index) : round_.at(index);
}

}  // namespace tierpilot
