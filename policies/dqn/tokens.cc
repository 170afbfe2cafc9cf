#include "policies/dqn/tokens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/estimate.h"

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

void make_tokens(const View& view, FeatureMask mask, const ExternalityWeights& others,
                 TokenSet& out) {
  out.nodes.clear();
  out.prior.clear();
  out.others.clear();
  out.scale_s = kShortest_s;
  Common common;
  common.typical = typical_rates(view);
  double best_s = -1;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (!view.nodes[i].candidate) continue;
    const double finish_s = estimate_finish(view.task, view.nodes[i], common.typical).finish_s();
    if (best_s < 0 || finish_s < best_s) best_s = finish_s;
    out.nodes.push_back(static_cast<uint32_t>(i));
  }
  out.features.resize(out.count() * kTokenSize);
  if (out.nodes.empty()) return;
  out.scale_s = common.scale_s = std::max(best_s, kShortest_s);
  look_at_cluster(view, common);
  look_at_request(view.task, common);
  const Externality externality(view, common.typical, mask);
  const double worst = kWorst;
  for (size_t t = 0; t < out.count(); ++t) {
    const NodeState& node = view.nodes[out.nodes[t]];
    const FinishEstimate estimate = estimate_finish(view.task, node, common.typical);
    write_token(view.task, node, estimate, common, out.features.data() + t * kTokenSize);
    out.prior.push_back(-static_cast<float>(std::min(estimate.finish_s() / common.scale_s, worst)));
    out.others.push_back(-static_cast<float>(std::clamp(
        externality.cost_s(node, estimate, others) / common.scale_s, -kMostOthers, kMostOthers)));
  }
  apply_mask(mask, out.features);
}

TokenSet thin_out(const TokenSet& tokens, size_t keep, size_t most) {
  std::vector<size_t> others(tokens.count());
  std::iota(others.begin(), others.end(), size_t{0});
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(keep));
  const size_t wanted = std::min(others.size(), most - 1);
  const size_t best = wanted == others.size() ? wanted : wanted / 2;
  const auto value = [&](size_t t) { return tokens.prior[t] + tokens.others[t]; };
  if (best < others.size())
    std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(best),
                      others.end(), [&](size_t a, size_t b) { return value(a) > value(b); });
  TokenSet thin;
  thin.scale_s = tokens.scale_s;
  const auto take = [&](size_t t) {
    const float* begin = tokens.features.data() + t * kTokenSize;
    thin.features.insert(thin.features.end(), begin, begin + kTokenSize);
    thin.prior.push_back(tokens.prior[t]);
    thin.others.push_back(tokens.others[t]);
    thin.nodes.push_back(tokens.nodes[t]);
  };
  take(keep);
  for (size_t i = 0; i < best; ++i) take(others[i]);
  for (size_t i = best; i < wanted; ++i)
    take(others[best + (i - best) * (others.size() - best) / (wanted - best)]);
  return thin;
}

}  // namespace tierpilot
