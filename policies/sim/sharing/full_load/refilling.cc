#include "policies/sim/sharing/full_load/refilling.h"

#include <algorithm>
#include <tuple>

#include "policies/sharing/unit_choice.h"

namespace tierpilot::sharing {
namespace {

constexpr uint64_t kMostNodes = 4;    // of a step
constexpr double kPassedOver = 0.03;  // of the places that would do

}  // namespace

Refilling::Refilling(std::vector<Node> idle, std::vector<Request> kinds, std::vector<uint32_t> left)
    : idle_(std::move(idle)), kinds_(std::move(kinds)), left_(std::move(left)) {
  for (const auto& node : idle_) {
    if (!node.units.empty()) with_units_.push_back(static_cast<uint32_t>(nodes_.size()));
    nodes_.push_back({node, {}});
  }
}

void Refilling::place(uint32_t kind, const Placement& placement) {
  auto& [free, held] = nodes_[placement.node];
  subtract(free, kinds_[kind], placement.units);
  held.push_back({kind, placement.units});
  --left_[kind];
  given_milli_ += kinds_[kind].total_milli();
}

// Of the first something is free, as far as that is soon found.
std::vector<uint32_t> Refilling::few_nodes(SeededRandom& random) const {
  constexpr int kTries = 20;
  const auto drawn = [&] { return with_units_[random.below(with_units_.size())]; };
  std::vector<uint32_t> few{drawn()};
  for (int i = 0; i < kTries && nodes_[few[0]].free.free_milli() == 0; ++i) few[0] = drawn();
  for (uint64_t more = random.below(kMostNodes); more > 0; --more)
    if (const auto node = drawn(); std::find(few.begin(), few.end(), node) == few.end())
      few.push_back(node);
  return few;
}

// Kinds of which some are left: the largest first, more or less, and where that is drawn those that
// want few cores; at last what wants no unit.
std::vector<uint32_t> Refilling::order(SeededRandom& random) const {
  constexpr double kMostPerCpuMilli = 1.0 / 12;  // a unit for twelve cores
  const double per_cpu_milli = random.chance(0.5) ? 0 : kMostPerCpuMilli * random.unit();
  const double noise = random.unit() / 2;
  std::vector<std::tuple<bool, double, uint32_t>> keys;
  for (uint32_t kind = 0; kind < kinds_.size(); ++kind) {
    if (left_[kind] == 0) continue;
    const auto milli = static_cast<double>(kinds_[kind].total_milli());
    const double worth =
        milli * (1 - noise * random.unit()) - per_cpu_milli * kinds_[kind].cpu_milli;
    keys.emplace_back(milli == 0, milli == 0 ? kinds_[kind].cpu_milli : -worth, kind);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<uint32_t> order;
  for (const auto& key : keys) order.push_back(std::get<uint32_t>(key));
  return order;
}

// On the fullest unit that it fits.
bool Refilling::put(std::vector<Filled>& nodes, uint32_t kind, SeededRandom& random) {
  const auto& request = kinds_[kind];
  Filled* best = nullptr;
  uint32_t least = 0;
  std::vector<uint32_t> chosen;
  for (auto& node : nodes) {
    if (!fits(node.free, request) || random.chance(kPassedOver)) continue;
    auto units = fullest_units(node.free, request);
    const uint32_t free = units.empty() ? 0 : node.free.units[units.front()].free_milli;
    if (best && free >= least) continue;
    best = &node;
    least = free;
    chosen = std::move(units);
  }
  if (!best) return false;
  subtract(best->free, request, chosen);
  best->held.push_back({kind, std::move(chosen)});
  --left_[kind];
  return true;
}

void Refilling::fill(std::vector<Filled>& nodes, SeededRandom& random) {
  for (const auto kind : order(random))
    while (left_[kind] > 0 && put(nodes, kind, random)) {
    }
}

Refilling::Worth Refilling::worth(const std::vector<Filled>& nodes) const {
  Worth worth;
  for (const auto& node : nodes)
    for (const auto& held : node.held) {
      worth.milli += kinds_[held.kind].total_milli();
      ++worth.requests;
    }
  return worth;
}

void Refilling::step(SeededRandom& random) {
  if (with_units_.empty()) return;
  const auto numbers = few_nodes(random);
  std::vector<Filled> before, after;
  for (const auto number : numbers) {
    before.push_back(nodes_[number]);
    after.push_back({idle_[number], {}});
    for (const auto& held : before.back().held) ++left_[held.kind];
  }
  fill(after, random);
  const auto was = worth(before), is = worth(after);
  if (is < was) {
    for (const auto& node : after)
      for (const auto& held : node.held) ++left_[held.kind];
    for (const auto& node : before)
      for (const auto& held : node.held) --left_[held.kind];
    return;
  }
  given_milli_ += is.milli - was.milli;
  for (size_t i = 0; i < numbers.size(); ++i) nodes_[numbers[i]] = std::move(after[i]);
}

}  // namespace tierpilot::sharing
