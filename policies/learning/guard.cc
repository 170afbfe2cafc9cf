#include "policies/learning/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace tierpilot {
namespace {

// Shares of decisions that a policy on probation has, one after the other.
constexpr std::array kProbationShares{0.05, 0.1, 0.25, 0.5};
constexpr uint32_t kMostDoublings = 6;
// Below so many of the heuristic's outcomes a round is young.
constexpr uint64_t kYoungRound = 20;

std::string text_of(const MeanInterval& mean) {
  return mean.count ? fmt::format("{:.3f} [{:.3f}, {:.3f}] of {}", mean.mean, mean.low, mean.high,
                                  mean.count)
                    : "nothing measured";
}

size_t place_of(const std::string& name, const std::vector<BoundedMeasure>& measures) {
  for (size_t i = 0; i < measures.size(); ++i)
    if (measures[i].name == name) return i;
  throw std::invalid_argument(
      fmt::format("nobody measures '{}', which a guard should judge", name));
}

}  // namespace

ArmComparison::ArmComparison(BoundedMeasure measure, double false_alarm)
    : measure_(std::move(measure)),
      policy_(measure_.low, measure_.high, false_alarm),
      control_(policy_) {}

// Each interval misses on the side that matters with half of the chance.
bool ArmComparison::policy_is_worse() const {
  return measure_.larger_is_better ? policy().high < control().low : policy().low > control().high;
}

double ArmComparison::advantage() const {
  const double difference = (policy().mean - control().mean) / (measure_.high - measure_.low);
  return measure_.larger_is_better ? difference : -difference;
}

std::string ArmComparison::text() const {
  return fmt::format("{} {}, the heuristic's {}", measure_.name, text_of(policy()),
                     text_of(control()));
}

Guard::Guard(GuardSettings settings, std::vector<BoundedMeasure> measures, GuardMemory memory)
    : settings_(std::move(settings)),
      measures_(std::move(measures)),
      judged_(place_of(settings_.judged, measures_)),
      memory_(std::move(memory)),
      round_(fresh_round()) {
  memory_.step = std::min<uint32_t>(memory_.step, kProbationShares.size() - 1);
  if (memory_.standing == Standing::kDeposed) memory_.setbacks = std::max(memory_.setbacks, 1U);
}

Guard::Round Guard::fresh_round() const {
  Round round;
  for (const BoundedMeasure& measure : measures_)
    round.emplace_back(measure, settings_.false_alarm);
  return round;
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
  faulty_.set(answers_++ % faulty_.size(), fault != DecisionFault::kNone);
  if (!settings_.on || memory_.mode == PolicyMode::kShadow) return;
  const bool too_many = faulty_.count() >= settings_.faults_to_depose;
  if (memory_.standing != Standing::kDeposed) {
    if (too_many)
      depose(fmt::format("{} of its last {} answers could not be used", faulty_.count(),
                         std::min<uint64_t>(answers_, faulty_.size())));
    return;
  }
  const uint64_t needed = settings_.shadow_answers
                          << std::min(memory_.setbacks - 1, kMostDoublings);
  if (++shadow_answers_ >= needed && !too_many) {
    memory_.step = 0;
    enter(Standing::kProbation, "on probation",
          fmt::format("{} answers in shadow, {} of the last {} bad", shadow_answers_,
                      faulty_.count(), std::min<uint64_t>(answers_, faulty_.size())));
  }
}

void Guard::measured(size_t measure, const Ticket& ticket, double value) {
  if (ticket.era != era_ || (ticket.arm != Arm::kPolicy && ticket.arm != Arm::kControl)) return;
  round_.at(measure).add(ticket.arm == Arm::kPolicy, value);
  if (settings_.on && measure == judged_) judge();
}

void Guard::judge() {
  const ArmComparison& now = round_.at(judged_);
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
  answers_ = 0;
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

const ArmComparison& Guard::comparison(size_t measure) const {
  const bool young = round_.at(measure).control().count < kYoungRound;
  return young && last_round_ ? last_round_->at(measure) : round_.at(measure);
}

}  // namespace tierpilot
