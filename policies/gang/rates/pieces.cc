#include "policies/gang/rates/pieces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tierpilot::gang {
namespace {

constexpr double kAges[] = {30, 90, 180, 365, 545, 730, 1095, 1460};  // days since it was installed
constexpr double kSince[] = {1, 3, 10, 30, 90};                       // days since its last failure
constexpr double kCohortDays = 180;
constexpr double kMinYoung = 0.1;  // units that came later than others, for age to tell anything
constexpr uint32_t kMaxPairLevels = 400;
constexpr double kNever = std::numeric_limits<double>::infinity();

template <size_t kCount>
int32_t class_of(const double (&edges)[kCount], double value) {
  return static_cast<int32_t>(std::upper_bound(edges, edges + kCount, value) - edges);
}

class Cutter {
 public:
  Cutter(const FailureHistory& history, const PieceSettings& settings, double at_day)
      : history_(history), settings_(settings), at_day_(at_day) {
    first_day_.assign(history.units.size(), kNever);
    for (const auto& service : history.services)
      first_day_[service.unit] = std::min(first_day_[service.unit], service.begin_day);
    const double late = history.begin_day + kAges[0];
    const auto young = std::count_if(first_day_.begin(), first_day_.end(),
                                     [&](double day) { return day > late && day < kNever; });
    ages_ = static_cast<double>(young) >= kMinYoung * static_cast<double>(first_day_.size());
    collect_failures();
    name_factors();
  }

  // From `begin` to `end` of a service.
  void cut(const Service& service, double begin, double end, bool weighted) {
    std::vector<double> edges{begin, end};
    if (ages_)
      for (const double age : kAges) edges.push_back(first_day_[service.unit] + age);
    const auto& failed = failed_[service.unit];
    if (settings_.since_failure)
      for (const double day : failed) {
        edges.push_back(day);
        for (const double since : kSince) edges.push_back(day + since);
      }
    std::sort(edges.begin(), edges.end());
    for (size_t i = 0; i + 1 < edges.size(); ++i) {
      const double from = std::max(edges[i], begin);
      const double to = std::min(edges[i + 1], end);
      if (to > from) add(service, from, to, weighted);
    }
  }

  // Counts failures with the piece they fell into: the last one that begins before them.
  void count(uint32_t unit, double day, double weight) {
    auto& pieces = by_unit_[unit];
    if (pieces.empty()) return;
    auto found = std::lower_bound(pieces.begin(), pieces.end(), day,
                                  [](const auto& piece, double at) { return piece.first < at; });
    if (found != pieces.begin()) --found;
    result_.failures[found->second] += weight;
  }

  double weight(double day) const {
    if (settings_.half_life_days <= 0) return 1;
    return std::exp2((day - at_day_) / settings_.half_life_days);
  }
  const std::vector<std::vector<double>>& failed() const { return failed_; }
  uint64_t all_failures() const { return all_failures_; }
  Pieces take() {
    if (settings_.pairs) add_pairs();
    return std::move(result_);
  }

 private:
  void collect_failures() {
    failed_.resize(history_.units.size());
    std::vector<double> last(history_.units.size(), -kNever);
    for (const auto& failure : history_.failures) {
      if (failure.day >= at_day_) break;
      if (settings_.kind >= 0 && static_cast<int32_t>(failure.kind) != settings_.kind) continue;
      ++all_failures_;
      const bool first = failure.day - last[failure.unit] >= settings_.cluster_days;
      last[failure.unit] = failure.day;
      if (first || settings_.cluster_days <= 0) failed_[failure.unit].push_back(failure.day);
    }
  }

  void name_factors() {
    const size_t nodes = history_.has_nodes ? 1 : 0;
    for (size_t i = nodes; i < history_.columns.size(); ++i)
      result_.factors.push_back({history_.columns[i].name, levels_of(i), {}, false});
    groups_ = result_.factors.size();
    if (nodes > 0) result_.node = {"node", levels_of(0), {}, false};
    if (ages_) {
      result_.factors.push_back({"age", std::size(kAges) + 1, {}, true});
      const double span = std::max(history_.end_day - history_.begin_day, 0.0);
      result_.factors.push_back(
          {"installed in", static_cast<uint32_t>(span / kCohortDays) + 2, {}, false});
    }
    if (settings_.since_failure)
      result_.factors.push_back({"since the last failure", std::size(kSince) + 2, {}, false});
  }
  uint32_t levels_of(size_t column) const {
    return static_cast<uint32_t>(history_.columns[column].levels.size());
  }

  void add(const Service& service, double from, double to, bool weighted) {
    const uint32_t unit = service.unit;
    by_unit_[unit].emplace_back(from, result_.size());
    result_.unit.push_back(unit);
    result_.exposure_days.push_back(weighted ? weight((from + to) / 2) * (to - from) : to - from);
    result_.failures.push_back(0);
    const size_t nodes = history_.has_nodes ? 1 : 0;
    if (nodes > 0) result_.node.of_piece.push_back(service.levels[0]);
    for (size_t i = 0; i < groups_; ++i)
      result_.factors[i].of_piece.push_back(service.levels[i + nodes]);
    const double middle = (from + to) / 2;
    size_t next = groups_;
    if (ages_) {
      result_.factors[next++].of_piece.push_back(class_of(kAges, middle - first_day_[unit]));
      const double late = std::max(first_day_[unit] - history_.begin_day, 0.0);
      result_.factors[next++].of_piece.push_back(static_cast<int32_t>(late / kCohortDays));
    }
    if (settings_.since_failure) result_.factors[next].of_piece.push_back(since(unit, middle));
  }

  int32_t since(uint32_t unit, double day) const {
    const auto& failed = failed_[unit];
    const auto after = std::upper_bound(failed.begin(), failed.end(), day);
    if (after == failed.begin()) return std::size(kSince) + 1;
    return class_of(kSince, day - *(after - 1));
  }

  void add_pairs() {
    for (size_t a = 0; a < groups_; ++a)
      for (size_t b = a + 1; b < groups_; ++b) {
        const auto& first = result_.factors[a];
        const auto& second = result_.factors[b];
        if (static_cast<uint64_t>(first.levels) * second.levels > kMaxPairLevels) continue;
        Factor pair{first.name + " and " + second.name, first.levels * second.levels, {}, false};
        for (size_t i = 0; i < result_.size(); ++i) {
          const int32_t x = first.of_piece[i];
          const int32_t y = second.of_piece[i];
          const bool known = x >= 0 && y >= 0;
          pair.of_piece.push_back(known ? x * static_cast<int32_t>(second.levels) + y
                                        : kUnknownLevel);
        }
        result_.factors.push_back(std::move(pair));
      }
  }

  const FailureHistory& history_;
  const PieceSettings settings_;
  const double at_day_;
  bool ages_ = false;
  size_t groups_ = 0;
  std::vector<double> first_day_;
  std::vector<std::vector<double>> failed_;  // days that count, of each unit
  uint64_t all_failures_ = 0;
  std::map<uint32_t, std::vector<std::pair<double, size_t>>> by_unit_;
  Pieces result_;
};

}  // namespace

Pieces observed_pieces(const FailureHistory& history, const PieceSettings& settings,
                       double at_day) {
  Cutter cutter(history, settings, at_day);
  for (const auto& service : history.services)
    if (service.begin_day < at_day)
      cutter.cut(service, service.begin_day, std::min(service.end_day, at_day), true);
  size_t counted = 0;
  for (uint32_t unit = 0; unit < history.units.size(); ++unit)
    for (const double day : cutter.failed()[unit]) {
      cutter.count(unit, day, cutter.weight(day));
      ++counted;
    }
  const double size = static_cast<double>(cutter.all_failures()) /
                      static_cast<double>(std::max<size_t>(counted, 1));
  Pieces pieces = cutter.take();
  pieces.cluster_size = std::max(size, 1.0);
  return pieces;
}

Pieces coming_pieces(const FailureHistory& history, const PieceSettings& settings, double at_day,
                     double horizon_days) {
  Cutter cutter(history, settings, at_day);
  for (const auto& service : history.services)
    if (service.begin_day <= at_day && service.end_day > at_day)
      cutter.cut(service, at_day, at_day + horizon_days, false);
  return cutter.take();
}

}  // namespace tierpilot::gang
