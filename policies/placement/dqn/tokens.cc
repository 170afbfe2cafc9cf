#include "policies/placement/dqn/tokens.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "policies/scheduling/estimate.h"

namespace tierpilot {
namespace {

constexpr double kPageBytes = 4096;
constexpr double kShortest_s = 1e-4;  // no scale below this: a dispatch takes as long
constexpr float kBound = 4;
// Finite, and so far away that candidates of a full cluster still differ.
constexpr double kMostOthers = 1e6;

float bounded(double value) {
  if (!(value == value)) return 0;
  return std::clamp(static_cast<float>(value), -kBound, kBound);
}

float ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : bounded(static_cast<double>(part) / static_cast<double>(whole));
}

float log_time(double seconds, double scale_s) {
  return bounded(std::log2(1 + seconds / scale_s) / 4);
}

float log_rate(double rate, double typical) {
  return rate > 0 ? bounded(std::log2(rate / typical) / 4) : 0;
}

// More than these make no difference, and no large cluster look like nothing ever seen.
float log_copies(double copies) {
  constexpr double kMany = 15;
  return bounded(std::log2(1 + std::min(copies, kMany)) / 4);
}

// A candidate, before it has a token.
struct Ranked {
  FinishEstimate estimate;
  double others_s = 0;
  size_t node = 0;
  double cost_s() const {
    const double cost_s = estimate.finish_s() + others_s;
    return std::isnan(cost_s) ? HUGE_VAL : cost_s;  // which would have no place in an order
  }
};

// The `most` with the least cost, `keep` among them, in the order of their nodes.
void keep_best(std::vector<Ranked>& ranked, size_t most, size_t keep) {
  if (ranked.size() <= most) return;
  const auto rank = [&](const Ranked& each) {
    return std::tuple(each.node != keep, each.cost_s(), each.node);
  };
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(most), ranked.end(),
                   [&](const Ranked& a, const Ranked& b) { return rank(a) < rank(b); });
  ranked.resize(most);
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& a, const Ranked& b) { return a.node < b.node; });
}

// What all tokens of a view share.
struct Common {
  NodeRates typical;
  double scale_s = 1;
  float data_pages = 0;
  float operations = 0;
  float task_units = 0;
  float fetch_to_run = 0;
  float mean_load = 0;
  float idle_share = 0;
  float candidate_share = 0;
  float mean_free_fast = 0;
  float fast_copies = 0;
  float slow_copies = 0;
};

void look_at_cluster(const View& view, Common& common) {
  double load = 0;
  double free = 0;
  double fast = 0;
  double slow = 0;
  size_t idle = 0;
  size_t candidates = 0;
  for (const NodeState& node : view.nodes) {
    load += load_of(node);
    free += ratio(node.free_fast_bytes, node.fast_budget_bytes);
    fast += ratio(node.held_fast_bytes, view.task.data_bytes);
    slow += ratio(node.held_slow_bytes, view.task.data_bytes);
    idle += node.assigned == 0;
    candidates += node.candidate;
  }
  const auto count = static_cast<double>(view.nodes.size());
  common.mean_load = bounded(std::log2(1 + load / count) / 2);
  common.idle_share = bounded(static_cast<double>(idle) / count);
  common.candidate_share = bounded(static_cast<double>(candidates) / count);
  common.mean_free_fast = bounded(free / count);
  common.fast_copies = log_copies(fast);
  common.slow_copies = log_copies(slow);
}

void look_at_request(const TaskFeatures& task, Common& common) {
  const auto data = static_cast<double>(task.data_bytes);
  const double operations = std::min(operations_of(task), 1e24);
  common.data_pages = bounded(std::log2(1 + data / kPageBytes) / 20);
  common.operations = bounded(std::log10(1 + operations) / 12);
  common.task_units = bounded(std::log2(1 + task.units) / 4);
  const double fetch_s = data / common.typical.fetch_bytes_per_s;
  const double run_s = operations / common.typical.operations_per_s;
  common.fetch_to_run = bounded(std::log2((fetch_s + kShortest_s) / (run_s + kShortest_s)) / 8);
}

void write_token(const TaskFeatures& task, const NodeState& node, const FinishEstimate& estimate,
                 const Common& common, float* out) {
  const auto put = [&](float value) { *out++ = value; };
  const auto& typical = common.typical;
  const uint64_t data = task.data_bytes;
  const uint64_t fast = std::min(node.held_fast_bytes, data);
  const uint64_t slow = std::min(node.held_slow_bytes, data - fast);
  const uint64_t needed = data - fast;
  const uint64_t evicted = needed > node.free_fast_bytes ? needed - node.free_fast_bytes : 0;
  put(log_time(estimate.wait_s, common.scale_s));
  put(log_time(estimate.serve_s, common.scale_s));
  put(log_time(estimate.evict_s, common.scale_s));
  put(log_time(estimate.run_s, common.scale_s));
  put(log_time(estimate.finish_s() - common.scale_s, common.scale_s));
  put(bounded(std::log2(1 + load_of(node)) / 2));
  put(bounded(static_cast<double>(node.running) / std::max<uint32_t>(node.units, 1)));
  put(bounded(std::log2(1 + node.units) / 8));
  put(ratio(node.free_fast_bytes, node.fast_budget_bytes));
  put(ratio(data, node.fast_budget_bytes));
  put(ratio(evicted, data));
  put(ratio(fast, data));
  put(ratio(slow, data));
  put(ratio(data - fast - slow, data));
  put(log_time(static_cast<double>(node.assigned_fetch_bytes) / typical.fetch_bytes_per_s,
               common.scale_s));
  put(log_rate(node.rates.operations_per_s, typical.operations_per_s));
  put(log_rate(node.rates.fast_bytes_per_s, typical.fast_bytes_per_s));
  put(log_rate(node.rates.promote_bytes_per_s, typical.promote_bytes_per_s));
  put(log_rate(node.rates.evict_bytes_per_s, typical.evict_bytes_per_s));
  put(log_rate(node.rates.fetch_bytes_per_s, typical.fetch_bytes_per_s));
  put(ratio(node.free_gpu_milli, node.gpu_milli));
  put(ratio(task.gpu_milli, node.gpu_milli));
  put(task.writes ? 1.0F : 0.0F);
  put(common.data_pages);
  put(common.operations);
  put(common.task_units);
  put(common.fetch_to_run);
  put(common.mean_load);
  put(common.idle_share);
  put(common.candidate_share);
  put(common.mean_free_fast);
  put(common.fast_copies);
  put(common.slow_copies);
}

void apply_mask(FeatureMask mask, std::vector<float>& features) {
  if (mask == kAllFeatures) return;
  for (size_t i = 0; i < features.size(); ++i) {
    const auto group = static_cast<unsigned>(kTokenFeatures[i % kTokenSize].group);
    if ((mask >> group & 1) == 0) features[i] = 0;
  }
}

}  // namespace

uint64_t hash_of(const TokenSet& tokens) {
  const std::string_view bytes(reinterpret_cast<const char*>(tokens.features.data()),
                               tokens.features.size() * sizeof(float));
  return std::hash<std::string_view>{}(bytes);
}

void make_tokens(const View& view, FeatureMask mask, const ExternalityWeights& others, size_t most,
                 TokenSet& out, size_t keep) {
  out.clear();
  Common common;
  common.typical = typical_rates(view);
  const Externality externality(view, common.typical, mask);
  thread_local std::vector<Ranked> ranked;
  ranked.clear();
  double best_s = HUGE_VAL;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    const NodeState& node = view.nodes[i];
    if (!node.candidate) continue;
    const FinishEstimate estimate = estimate_finish(view.task, node, common.typical);
    best_s = std::min(best_s, estimate.finish_s());
    ranked.push_back({estimate, externality.cost_s(node, estimate, others), i});
  }
  if (ranked.empty()) return;
  keep_best(ranked, most, keep);
  out.scale_s = common.scale_s = std::max(best_s, kShortest_s);
  look_at_cluster(view, common);
  look_at_request(view.task, common);
  out.features.resize(ranked.size() * kTokenSize);
  float* features = out.features.data();
  for (const Ranked& each : ranked) {
    write_token(view.task, view.nodes[each.node], each.estimate, common, features);
    features += kTokenSize;
    const double prior = std::min(each.estimate.finish_s() / out.scale_s, double{kWorst});
    out.prior.push_back(-static_cast<float>(prior));
    out.others.push_back(
        -static_cast<float>(std::clamp(each.others_s / out.scale_s, -kMostOthers, kMostOthers)));
    out.nodes.push_back(static_cast<uint32_t>(each.node));
  }
  apply_mask(mask, out.features);
}

}  // namespace tierpilot
