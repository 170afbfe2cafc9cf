#include "coordinator/core/decisions/oversight.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr double kShownMiss = 0.05;

}  // namespace

Status Oversight::begin(OversightSettings settings,
                        const std::map<std::string, std::string>& learned) {
  settings_ = std::move(settings);
  generator_.seed(settings_.seed);
  const auto known = records::policy_standings(store_.reader());
  if (!known) return tl::unexpected(known.error());
  for (const auto& [policy, measure] : learned) {
    GuardSettings guard = settings_.guard;
    guard.judged = measure;
    GuardMemory memory;
    memory.mode = settings_.mode;
    for (const auto& standing : *known)
      if (standing.policy == policy) memory = standing.memory;
    if (memory.standing != Standing::kTrusted)
      spdlog::warn("policy '{}' is {}: {}", policy, standing_name(memory.standing), memory.why);
    subject(policy).guard.emplace(guard, settings_.measures, memory);
  }
  return {};
}

Oversight::Subject& Oversight::subject(const std::string& policy) {
  Subject& found = subjects_[policy];
  if (found.measured.empty())
    for (const BoundedMeasure& measure : settings_.measures)
      found.measured.emplace_back(measure.low, measure.high, kShownMiss);
  return found;
}

bool Oversight::stands(const Turn& turn) const {
  const Guard* watching = guard(turn.policy);
  return !watching || (watching->memory().mode == turn.mode && watching->era() == turn.ticket.era);
}

Oversight::Turn Oversight::next(const std::string& policy) {
  Subject& asked = subject(policy);
  if (!asked.guard) return {policy, {}, PolicyMode::kEnforce, 0};
  const double chance = std::uniform_real_distribution<>()(generator_);
  Turn turn{policy, asked.guard->next(chance), asked.guard->memory().mode, 0};
  asked.tally.asked += turn.asks();
  asked.tally.control += turn.ticket.arm == Arm::kControl;
  return turn;
}

void Oversight::answered(const Turn& turn, DecisionFault fault) {
  Subject& asked = subject(turn.policy);
  ++asked.tally.faults.at(static_cast<size_t>(fault));
  if (!asked.guard) return;
  asked.guard->answered(fault);
  write_changes(turn.policy, asked);
}

void Oversight::compared(const Turn& turn, bool differs, bool followed) {
  Tally& tally = subject(turn.policy).tally;
  ++tally.advised;
  tally.differed += differs;
  tally.followed += differs && followed;
}

void Oversight::measured(const Turn& turn, size_t measure, double value) {
  Subject& asked = subject(turn.policy);
  if (turn.ticket.arm == Arm::kPolicy) asked.measured.at(measure).add(value);
  if (!asked.guard) return;
  asked.guard->measured(measure, turn.ticket, value);
  write_changes(turn.policy, asked);
}

void Oversight::rewarded(const Turn& turn, double reward) {
  measured(turn, kReward, reward);
}

void Oversight::finished(const Turn& turn, double response_s) {
  if (const auto relative = relative_.of(response_s, turn.estimate_s))
    measured(turn, kResponse, *relative);
}

Status Oversight::set_mode(const std::string& policy, PolicyMode mode, Store::Done durable) {
  Subject& asked = subject(policy);
  if (!asked.guard)
    return fail(ErrorCode::kInvalid,
                fmt::format("policy '{}' does not learn: it has no mode", policy));
  asked.guard->set_mode(mode);
  write_changes(policy, asked, std::move(durable));
  return {};
}

void Oversight::retry() {
  for (auto& [policy, subject] : subjects_)
    if (std::exchange(subject.unwritten, false)) write_standing(policy, subject, nullptr);
}

void Oversight::start_anew(const std::string& policy, const std::string& why) {
  if (auto& guard = subject(policy).guard) guard->start_anew();
  record({clock_.wall_ms(), policy, "rolled back", why});
}

const Guard* Oversight::guard(const std::string& policy) const {
  const auto known = subjects_.find(policy);
  return known != subjects_.end() && known->second.guard ? &*known->second.guard : nullptr;
}

Oversight::Measured Oversight::measured(const std::string& policy) {
  Measured intervals;
  for (const auto& sequence : subject(policy).measured) intervals.push_back(sequence.interval());
  return intervals;
}

Result<std::vector<PolicyEvent>> Oversight::events(const std::string& policy, uint32_t limit) {
  return records::policy_events(store_.reader(), policy, limit);
}

void Oversight::write_changes(const std::string& policy, Subject& subject, Store::Done durable) {
  const auto events = subject.guard->take_events();
  // Who waits for it may wait for what could not be written earlier.
  if (events.empty() && !durable) return;
  for (const auto& event : events) record({clock_.wall_ms(), policy, event.what, event.why});
  write_standing(policy, subject, std::move(durable));
  if (!events.empty() && events.back().what == "deposed" && on_deposed)
    on_deposed(policy, events.back().why);
}

void Oversight::write_standing(const std::string& policy, Subject& subject, Store::Done durable) {
  const PolicyStanding standing{policy, subject.guard->memory()};
  store_.write([standing](Db& db) { return records::put_policy_standing(db, standing); },
               [&subject, durable = std::move(durable)](Status status) {
                 subject.unwritten |= !status;
                 if (durable) durable(std::move(status));
               });
}

void Oversight::record(PolicyEvent event) {
  spdlog::warn("policy '{}': {}: {}", event.policy, event.what, event.why);
  store_.write([event = std::move(event)](Db& db) { return records::put_policy_event(db, event); },
               nullptr);
}

}  // namespace tierpilot
