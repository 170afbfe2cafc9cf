#include "coordinator/service/policy_wire.h"

#include <array>

#include "coordinator/service/wire.h"

namespace tierpilot {
namespace {

constexpr std::array<const char*, kDecisionFaults> kFaultNames{
    "none", "no_weights", "not_finite", "unfamiliar", "failed", "slow", "no_candidate"};

void write_interval(const MeanInterval& interval, wire::Interval::Builder out) {
  const auto figure = [&](double value) {
    return interval.count ? Figure{value, {}} : Figure{std::nullopt, "nothing was measured yet"};
  };
  out.setCount(interval.count);
  write_figure(figure(interval.mean), out.initMean());
  write_figure(figure(interval.low), out.initLow());
  write_figure(figure(interval.high), out.initHigh());
}

}  // namespace

void write_standing(const Guard& guard, wire::PolicyEntry::Builder out) {
  out.setMode(policy_mode_name(guard.memory().mode));
  out.setStanding(standing_name(guard.memory().standing));
  out.setWhy(guard.memory().why);
  out.setShare(guard.policy_share());
}

void write_guard(bool on, const Oversight::Tally& tally, wire::PolicyGuard::Builder out) {
  out.setOn(on);
  out.setAsked(tally.asked);
  out.setControl(tally.control);
  out.setAdvised(tally.advised);
  out.setDiffered(tally.differed);
  out.setFollowed(tally.followed);
  auto faults = out.initFaults(kDecisionFaults - 1);
  for (unsigned i = 1; i < kDecisionFaults; ++i) {
    faults[i - 1].setName(kFaultNames[i]);
    faults[i - 1].initValue().setValue(static_cast<double>(tally.faults[i]));
  }
}

void write_version(const WeightsVersion& version, wire::WeightsVersion::Builder out) {
  out.setNumber(version.number);
  out.setAtMs(version.at_ms);
  out.setWhy(version.why);
  out.setExperiences(version.experiences);
  out.setBatches(version.batches);
  out.setWeightsVersion(version.weights_version);
  out.setOrigin(version.origin);
  write_interval(version.reward, out.initReward());
  write_interval(version.response, out.initResponse());
}

void write_event(const PolicyEvent& event, wire::PolicyEvent::Builder out) {
  out.setAtMs(event.at_ms);
  out.setPolicy(event.policy);
  out.setWhat(event.what);
  out.setWhy(event.why);
}

void write_comparison(const BoundedMeasure& measure, const NamedInterval& first,
                      const NamedInterval& second, wire::PolicyComparison::Builder out) {
  out.setMeasure(measure.name);
  out.setFirst(first.first);
  out.setSecond(second.first);
  const MeanInterval& a = first.second;
  const MeanInterval& b = second.second;
  write_interval(a, out.initOfFirst());
  write_interval(b, out.initOfSecond());
  if (a.count == 0 || b.count == 0) {
    const Figure none{std::nullopt, "one of the two was not measured yet"};
    write_figure(none, out.initDifferenceLow());
    write_figure(none, out.initDifferenceHigh());
    out.setVerdict("not known yet");
    return;
  }
  const double low = a.low - b.high;
  const double high = a.high - b.low;
  write_figure({low, {}}, out.initDifferenceLow());
  write_figure({high, {}}, out.initDifferenceHigh());
  const bool larger = low > 0;
  const bool smaller = high < 0;
  out.setVerdict(!larger && !smaller                  ? "not known yet"
                 : larger == measure.larger_is_better ? "better"
                                                      : "worse");
}

}  // namespace tierpilot
