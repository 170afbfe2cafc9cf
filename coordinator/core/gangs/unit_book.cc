#include "coordinator/core/gangs/unit_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/gang/rates/forecast.h"
#include "policies/gang/rates/rate_model.h"

namespace tierpilot {
namespace {

constexpr size_t kMostFailures = 10'000;
constexpr int64_t kReckonEvery_ms = 60'000;
constexpr double kMsOfDay = 86'400e3;
constexpr double kRepairedHalfLife_days = 14;  // what was long ago says little of a unit now

std::string node_of(const std::string& unit) {
  return unit.substr(0, unit.find('/'));
}

// Each unit has been in service since it was first seen.
gang::FailureHistory history_of(const std::map<std::string, int64_t>& since_ms,
                                const std::vector<UnitFailure>& failures, int64_t now_ms) {
  int64_t begin_ms = now_ms;
  for (const auto& [unit, since] : since_ms) begin_ms = std::min(begin_ms, since);
  const auto day = [&](int64_t ms) { return static_cast<double>(ms - begin_ms) / kMsOfDay; };
  gang::FailureHistory history;
  history.has_nodes = true;
  history.whole_fleet = true;
  history.kinds = {"any"};
  history.columns.push_back({"node", {}});
  // What fails now lies before the end: the model counts only that.
  history.end_day = std::max(day(now_ms + 1), 1e-6);
  std::map<std::string, uint32_t> numbers, nodes;
  for (const auto& [unit, told_since] : since_ms) {
    const int64_t since = std::min(told_since, now_ms);  // by a clock that was ahead
    const auto number = static_cast<uint32_t>(history.units.size());
    const auto [node, is_new] =
        nodes.emplace(node_of(unit), static_cast<uint32_t>(history.columns[0].levels.size()));
    if (is_new) history.columns[0].levels.push_back(node->first);
    numbers[unit] = number;
    history.units.push_back(unit);
    history.services.push_back(
        {number, day(since), history.end_day + 1, {static_cast<int32_t>(node->second)}});
  }
  // What happens at the end of a history is not seen by it any more; this has just happened.
  const double latest = std::nextafter(history.end_day, 0);
  for (const auto& failure : failures)
    if (const auto unit = numbers.find(failure.unit); unit != numbers.end())
      history.failures.push_back({std::clamp(day(failure.at_ms), 0.0, latest), unit->second, 0});
  return history;
}

// By unit; old ones count less.
std::vector<double> failures_of(const gang::FailureHistory& history) {
  std::vector<double> failures(history.units.size());
  for (const auto& failure : history.failures)
    failures[failure.unit] += std::exp2((failure.day - history.end_day) / kRepairedHalfLife_days);
  return failures;
}

// A fleet too young to tell whether its units differ is taken for one where they do: each has a
// rate of its own, Gamma-distributed about what the model says, with the shape 1.
gang::UnitRate by_its_own(const gang::UnitRate& rate, double failures,
                          const gang::FailureHistory& history) {
  const double days = history.end_day - history.services[rate.unit].begin_day;
  const double mean = std::max(rate.per_day, 1e-9);
  return {rate.unit, (1 + failures) / (1 / mean + days), 1 + failures};
}

}  // namespace

std::string told_as(const NodeFacts& teller, uint64_t event) {
  return fmt::format("{}/{}/{}", teller.name, teller.instance, event);
}

std::vector<std::string> UnitBook::add(const NodeFacts& facts, int64_t now_ms) {
  std::vector<std::string> added;
  const auto put = [&](std::string unit) {
    if (since_ms_.emplace(unit, now_ms).second) added.push_back(std::move(unit));
  };
  for (uint32_t number = 0; number < facts.units; ++number) put(cpu_unit_id(facts.name, number));
  for (const auto& gpu : facts.gpus) put(gpu_unit_id(facts.name, gpu));
  for (const auto& unit : facts.shared_units)
    if (!unit.gpu.empty()) put(gpu_unit_id(facts.name, unit.gpu));
  if (!added.empty()) reckoned_ms_ = INT64_MIN;
  return added;
}

void UnitBook::restore(const KnownUnits& known) {
  for (const auto& [unit, since] : known.since_ms) remember(unit, since);
  for (const auto& failure : known.failures) failed(failure);
  for (const auto& [unit, reason] : known.drains) drain(unit, reason);
}

void UnitBook::forget(const std::string& node) {
  const auto is_of = [&](const std::string& unit) { return node_of(unit) == node; };
  std::erase_if(since_ms_, [&](const auto& unit) { return is_of(unit.first); });
  std::erase_if(failures_,
                [&](const auto& failure) { return is_of(failure.unit) || is_of(failure.told); });
  std::erase_if(drains_, [&](const auto& drain) { return is_of(drain.first); });
  unhealthy_.erase(node);
  rates_.clear();
  reckoned_ms_ = INT64_MIN;
}

void UnitBook::failed(UnitFailure failure) {
  failures_.push_back(std::move(failure));
  if (failures_.size() > kMostFailures) failures_.erase(failures_.begin());
  reckoned_ms_ = INT64_MIN;
}

void UnitBook::forgive(uint64_t task) {
  std::erase_if(failures_, [&](const auto& failure) { return failure.task == task; });
  reckoned_ms_ = INT64_MIN;
}

const UnitFailure* UnitBook::find(const std::string& told) const {
  const auto found = std::find_if(failures_.begin(), failures_.end(), [&](const auto& failure) {
    return !told.empty() && failure.told == told;
  });
  return found == failures_.end() ? nullptr : &*found;
}

void UnitBook::quarantine_written(const std::string& unit, bool on_disk) {
  const auto drain = drains_.find(unit);
  if (drain == drains_.end() || drain->second.on_disk) return;
  if (on_disk)
    drain->second.on_disk = true;
  else
    drains_.erase(drain);
}

void UnitBook::resume(const std::string& unit) {
  drains_.erase(unit);
  // What a daemon may tell once more is news no longer, and counts against nobody.
  for (auto& failure : failures_)
    if (failure.unit == unit && !failure.told.empty()) failure.unit.clear();
  std::erase_if(failures_, [&](const auto& failure) { return failure.unit == unit; });
  reckoned_ms_ = INT64_MIN;
}

std::string UnitBook::drained_because(const std::string& unit) const {
  const auto drain = drains_.find(unit);
  return drain == drains_.end() ? "" : drain->second.reason;
}

std::string UnitBook::told_drain(const std::string& unit) const {
  const auto drain = drains_.find(unit);
  return drain == drains_.end() || !drain->second.on_disk ? "" : drain->second.reason;
}

std::map<std::string, std::string> UnitBook::say_unhealthy(
    const std::string& node, std::map<std::string, std::string> reasons) {
  if (reasons.empty() && !unhealthy_.contains(node)) return {};
  auto& known = unhealthy_[node];
  std::map<std::string, std::string> changed;
  for (const auto& [unit, reason] : reasons)
    if (const auto before = known.find(unit); before == known.end() || before->second != reason)
      changed[unit] = reason;
  for (const auto& [unit, reason] : known)
    if (!reasons.contains(unit)) changed[unit] = "";
  known = std::move(reasons);
  if (known.empty()) unhealthy_.erase(node);
  return changed;
}

std::string UnitBook::unhealthy_because(const std::string& unit) const {
  const auto node = unhealthy_.find(node_of(unit));
  if (node == unhealthy_.end()) return {};
  const auto reason = node->second.find(unit);
  return reason == node->second.end() ? "" : reason->second;
}

std::string UnitBook::quarantine_reason(const std::string& unit, uint32_t most,
                                        int64_t since_ms) const {
  constexpr size_t kMostShare = 4;  // of all units one in so many; there is at least one
  const auto out =
      static_cast<size_t>(std::count_if(drains_.begin(), drains_.end(), [](const auto& drain) {
        return drain.second.reason.starts_with(kQuarantine);
      }));
  if (most == 0 || !is_known(unit) || drains_.contains(unit) ||
      out >= std::max<size_t>(since_ms_.size() / kMostShare, 1))
    return {};
  std::map<std::string, uint32_t> kinds;
  uint32_t failed = 0;
  for (const auto& failure : failures_) {
    if (failure.unit != unit || failure.at_ms < since_ms) continue;
    ++failed;
    ++kinds[failure.kind];
  }
  if (failed < most) return {};
  std::string told;
  for (const auto& [kind, count] : kinds)
    told += fmt::format("{}{} x {}", told.empty() ? "" : ", ", count, kind);
  return fmt::format("{}{} failures ({})", kQuarantine, failed, told);
}

std::set<std::string> UnitBook::out_of_service() const {
  std::set<std::string> out;
  for (const auto& [unit, drain] : drains_) out.insert(unit);
  for (const auto& [node, reasons] : unhealthy_)
    for (const auto& [unit, reason] : reasons) out.insert(unit);
  return out;
}

uint64_t UnitBook::failures(const std::string& unit) const {
  return static_cast<uint64_t>(std::count_if(failures_.begin(), failures_.end(),
                                             [&](const auto& each) { return each.unit == unit; }));
}

const std::map<std::string, UnitFailureRate>& UnitBook::rates(int64_t now_ms) const {
  if (since_ms_.empty() || (reckoned_ms_ != INT64_MIN && now_ms < reckoned_ms_ + kReckonEvery_ms))
    return rates_;
  reckoned_ms_ = now_ms;
  rates_.clear();
  const auto history = history_of(since_ms_, failures_, now_ms);
  gang::PieceSettings settings;
  settings.half_life_days = kRepairedHalfLife_days;
  const gang::RateModel model(history, settings, history.end_day);
  const auto evidence = model.evidence();
  const bool units_differ = std::any_of(evidence.begin(), evidence.end(), [](const auto& factor) {
    return factor.name == "unit" && factor.matters;
  });
  const auto failures = failures_of(history);
  for (auto rate : model.rates(1)) {
    if (!units_differ) rate = by_its_own(rate, failures[rate.unit], history);
    const auto interval = gang::gamma_interval(rate.per_day, rate.shape, 0.9);
    rates_[history.units[rate.unit]] = {rate.per_day / 24, interval.low / 24, interval.high / 24,
                                        rate.shape};
  }
  return rates_;
}

}  // namespace tierpilot
