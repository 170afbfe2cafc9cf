#include "daemon/probe/active/measure.h"

#include <stdlib.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/probe/active/child.h"
#include "daemon/probe/active/observation.h"
#include "daemon/probe/active/programs.h"

namespace tierpilot {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kUnmeasured = 1e300;
// Figures that differ by less are one class: noise must not decide a ranking.
constexpr double kSameLatency = 1.1;
constexpr double kSameBandwidth = 1.25;

std::vector<size_t> indices(size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

// For each value the number of its class; a class reaches from its smallest value to `ratio` times
// it.
std::vector<int> classes_of(const std::vector<double>& values, double ratio) {
  auto order = indices(values.size());
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<int> classes(values.size());
  double smallest = 0;
  int current = 0;
  for (const size_t i : order) {
    if (values[i] > smallest * ratio) {
      smallest = values[i];
      ++current;
    }
    classes[i] = current;
  }
  return classes;
}

// The tiers' ledgers.
class Session {
 public:
  explicit Session(const std::vector<TierSpec>& tiers) {
    for (const auto& tier : tiers) ledgers_.emplace_back(tier);
  }

  // Runs the work in a child; the figures it did not get to are explained by its end.
  void run(const std::function<void(const ObservationSink&)>& work, Clock::time_point deadline,
           std::initializer_list<std::string_view> figures) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const auto in_child = [&work](const LineSink& line) {
      work([&line](const Observation& observation) { line(observation_to_line(observation)); });
    };
    const auto status =
        run_in_child(in_child, std::max(left, std::chrono::milliseconds(1)), [this](auto line) {
          const auto observation = observation_from_line(line);
          if (observation && observation->tier < ledgers_.size())
            ledgers_[observation->tier].add(*observation);
        });
    if (!status) explain_missing(figures, status.error().message);
  }

  void explain_missing(std::initializer_list<std::string_view> figures, const std::string& reason) {
    for (auto& ledger : ledgers_)
      for (const auto name : figures) ledger.explain_missing(name, reason);
  }

  Ledger& ledger(size_t tier) { return ledgers_[tier]; }

  std::vector<TierMeasurement> measurements() const {
    std::vector<TierMeasurement> all;
    for (const auto& ledger : ledgers_) all.push_back(ledger.measurement());
    return all;
  }

 private:
  std::vector<Ledger> ledgers_;
};

void explain_what_was_not_asked(Session& session, const ProbeOptions& options) {
  const std::string reason = "not asked for";
  if (!options.latency) session.explain_missing({figure::kLatency, figure::kCachedLatency}, reason);
  if (!options.bandwidth) session.explain_missing({figure::kRead, figure::kWrite}, reason);
  if (!options.eviction) session.explain_missing({figure::kEvict, figure::kPromote}, reason);
}

}  // namespace

std::vector<size_t> rank_tiers(const std::vector<TierMeasurement>& tiers) {
  std::vector<double> latencies, times_per_byte;
  for (const auto& tier : tiers) {
    latencies.push_back(tier.latency_p50_ns.value.value_or(kUnmeasured));
    times_per_byte.push_back(1 / tier.read_gb_per_s.value.value_or(1 / kUnmeasured));
  }
  const auto near = classes_of(latencies, kSameLatency);
  const auto wide = classes_of(times_per_byte, kSameBandwidth);
  auto order = indices(tiers.size());
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(near[a], wide[a]) < std::pair(near[b], wide[b]);
  });
  return order;
}

Result<std::vector<TierMeasurement>> measure_tiers(const std::vector<TierSpec>& tiers,
                                                   const ProbeOptions& wanted) {
  if (tiers.empty()) return fail(ErrorCode::kInvalid, "there are no tiers to measure");
  if (wanted.rounds < 1 || wanted.timeout.count() < 1)
    return fail(ErrorCode::kInvalid, "measuring takes at least one round and one millisecond");
  ProbeOptions options = wanted;
  const bool moves = options.eviction && tiers.size() > 1;
  options.latency |= moves;  // neighbours are known by their ranks
  double load_1min = 0;
  getloadavg(&load_1min, 1);
  Session session(tiers);
  explain_what_was_not_asked(session, options);
  for (size_t i = 0; i < tiers.size(); ++i)
    if (!tiers[i].is_directory())
      session.ledger(i).explain_missing(figure::kCachedLatency, "only directories have one");

  // Evictions come last and keep a third of the time for themselves.
  const auto deadline = Clock::now() + options.timeout;
  if (options.latency || options.bandwidth)
    session.run([&](const ObservationSink& sink) { probe_tiers(tiers, options, sink); },
                moves ? deadline - options.timeout / 3 : deadline,
                {figure::kLatency, figure::kCachedLatency, figure::kRead, figure::kWrite});
  const auto ranked = rank_tiers(session.measurements());
  for (const auto name : {figure::kEvict, figure::kPromote})
    session.ledger(ranked.back()).explain_missing(name, "no slower tier");
  if (moves)
    session.run([&](const ObservationSink& sink) { probe_transfers(tiers, ranked, options, sink); },
                deadline, {figure::kEvict, figure::kPromote});

  std::vector<TierMeasurement> result;
  auto measured = session.measurements();
  for (const size_t i : ranked) {
    measured[i].load_1min = load_1min;
    result.push_back(std::move(measured[i]));
  }
  return result;
}

}  // namespace tierpilot
