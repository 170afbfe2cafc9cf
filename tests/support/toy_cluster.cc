#include "tests/support/toy_cluster.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

constexpr double kOperationsPerS = 2e9;

// Takes out what happened until `now_s`, in order.
template <class Event>
std::vector<Event> take_until(std::vector<std::pair<double, Event>>& events, double now_s) {
  const auto later = std::partition(events.begin(), events.end(),
                                    [&](const auto& entry) { return entry.first <= now_s; });
  std::sort(events.begin(), later, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Event> taken;
  for (auto entry = events.begin(); entry != later; ++entry) taken.push_back(entry->second);
  events.erase(events.begin(), later);
  return taken;
}

}  // namespace

ToyCluster::ToyCluster(const ToySettings& settings, uint64_t seed)
    : settings_(settings), generator_(seed) {
  std::uniform_real_distribution<double> size(static_cast<double>(settings_.smallest_dataset_bytes),
                                              static_cast<double>(settings_.largest_dataset_bytes));
  for (uint32_t i = 0; i < settings_.datasets; ++i)
    datasets_.push_back({static_cast<uint64_t>(size(generator_)),
                         std::pow(i + 1.0, -settings_.popularity_exponent)});
  for (uint32_t i = 0; i < settings_.nodes; ++i) {
    Node node;
    node.slow.resize(settings_.datasets);
    for (uint32_t d = i; d < settings_.datasets; d += settings_.nodes) node.slow[d] = true;
    node.free_at_s.resize(settings_.units_per_node);
    nodes_.push_back(std::move(node));
  }
}

const View& ToyCluster::arrive() {
  const double units = settings_.nodes * settings_.units_per_node;
  const double between_s = settings_.mean_compute_s / (settings_.offered_load * units);
  arrival_s_ += std::exponential_distribution<double>(1 / between_s)(generator_);
  now_s_ = std::max(now_s_, arrival_s_);
  wait_for_room();
  draw_task();
  look_around();
  return view_;
}

bool ToyCluster::has_room(uint32_t node) const {
  const auto taken =
      std::count_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return job.node == node; });
  return taken < settings_.units_per_node + settings_.backlog_units;
}

void ToyCluster::wait_for_room() {
  for (;;) {
    std::erase_if(jobs_, [&](const Job& job) { return job.end_s <= now_s_; });
    for (uint32_t i = 0; i < settings_.nodes; ++i)
      if (has_room(i)) return;
    now_s_ = std::min_element(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
               return a.end_s < b.end_s;
             })->end_s;
  }
}

void ToyCluster::draw_task() {
  std::vector<double> popularity;
  for (const Dataset& dataset : datasets_) popularity.push_back(dataset.popularity);
  std::discrete_distribution<uint32_t> pick(popularity.begin(), popularity.end());
  wanted_ = {pick(generator_)};
  if (std::bernoulli_distribution(settings_.second_dataset_share)(generator_)) {
    const uint32_t second = pick(generator_);
    if (second != wanted_[0]) wanted_.push_back(second);
  }
  compute_s_ =
      settings_.mean_compute_s * std::uniform_real_distribution<double>(0.3, 1.7)(generator_);
  view_.task = {};
  view_.task.writes = std::bernoulli_distribution(settings_.write_share)(generator_);
  view_.task.operations = compute_s_ * kOperationsPerS;
  for (uint32_t dataset : wanted_) view_.task.data_bytes += datasets_[dataset].bytes;
}

double ToyCluster::operations_per_s(uint32_t node) const {
  const double place = settings_.nodes > 1 ? node / (settings_.nodes - 1.0) - 0.5 : 0;
  return kOperationsPerS * std::exp2(place * settings_.speed_spread);
}

void ToyCluster::look_around() {
  view_.nodes.clear();
  for (uint32_t i = 0; i < settings_.nodes; ++i) {
    NodeState state{.slot = i, .candidate = has_room(i), .units = settings_.units_per_node};
    state.fast_budget_bytes = settings_.fast_budget_bytes;
    state.free_fast_bytes = settings_.fast_budget_bytes - nodes_[i].fast_bytes;
    state.rates = {.operations_per_s = operations_per_s(i),
                   .fast_bytes_per_s = settings_.hit_bytes_per_s,
                   .promote_bytes_per_s = settings_.promote_bytes_per_s,
                   .evict_bytes_per_s = settings_.evict_bytes_per_s,
                   .fetch_bytes_per_s = settings_.fetch_bytes_per_s};
    for (uint32_t dataset : wanted_)
      if (in_fast(nodes_[i], dataset))
        state.held_fast_bytes += datasets_[dataset].bytes;
      else if (nodes_[i].slow[dataset])
        state.held_slow_bytes += datasets_[dataset].bytes;
    view_.nodes.push_back(state);
  }
  for (const Job& job : jobs_) {
    NodeState& state = view_.nodes[job.node];
    ++state.assigned;
    state.running += job.begin_s <= now_s_;
    state.assigned_operations += job.operations;
    if (job.served_s > now_s_) state.assigned_fetch_bytes += job.fetch_bytes;
  }
}

uint64_t ToyCluster::place(size_t index) {
  Node& node = nodes_[index];
  const auto number = static_cast<uint32_t>(index);
  auto unit = std::min_element(node.free_at_s.begin(), node.free_at_s.end());
  uint64_t evicted_bytes = 0;
  double service_s = 0.0005;
  for (uint32_t dataset : wanted_) service_s += serve_s(node, dataset, evicted_bytes);
  // Data is brought in while the task waits for a unit, one task's after another's.
  const double served_s = std::max(node.transfers_end_s, now_s_) + service_s * noise();
  node.transfers_end_s = served_s;
  const double begin_s = std::max(*unit, served_s);
  *unit = begin_s + view_.task.operations / operations_per_s(number);
  const uint64_t held = view_.nodes[index].held_fast_bytes;
  jobs_.push_back({number, begin_s, *unit, view_.task.operations,
                   view_.task.data_bytes - std::min(held, view_.task.data_bytes), served_s});
  last_response_s_ = *unit - arrival_s_;
  ends_.emplace_back(*unit, End{next_id_, *unit - now_s_, last_response_s_});
  if (view_.task.writes)
    for (uint32_t dataset : wanted_) drop_other_replicas(number, dataset);

  ServiceMeasure measure;
  measure.utilisation = busy_share();
  measure.service_ns = (served_s - now_s_) * 1e9;
  measure.reference_ns =
      1e6 + static_cast<double>(view_.task.data_bytes) / settings_.hit_bytes_per_s * 1e9;
  measure.evicted_bytes = evicted_bytes;
  measure.evict_bytes_per_s = settings_.evict_bytes_per_s;
  served_.emplace_back(
      served_s, Outcome{next_id_, *compute_reward(measure, RewardSettings{}), served_s - now_s_});
  return next_id_++;
}

std::vector<ToyCluster::Outcome> ToyCluster::take_outcomes() {
  return take_until(served_, now_s_);
}

std::vector<ToyCluster::End> ToyCluster::take_ends() {
  return take_until(ends_, now_s_);
}

double ToyCluster::serve_s(Node& node, uint32_t dataset, uint64_t& evicted_bytes) {
  const uint64_t bytes = datasets_[dataset].bytes;
  const auto size = static_cast<double>(bytes);
  double seconds = size / settings_.hit_bytes_per_s;
  if (in_fast(node, dataset)) {
    node.fast.remove(dataset);
  } else {
    const uint64_t evicted = make_room(node, bytes);
    evicted_bytes += evicted;
    seconds += static_cast<double>(evicted) / settings_.evict_bytes_per_s;
    seconds +=
        size / (node.slow[dataset] ? settings_.promote_bytes_per_s : settings_.fetch_bytes_per_s);
    node.slow[dataset] = false;
    node.fast_bytes += bytes;
  }
  node.fast.push_front(dataset);
  return seconds;
}

uint64_t ToyCluster::make_room(Node& node, uint64_t bytes) {
  uint64_t evicted = 0;
  while (!node.fast.empty() && node.fast_bytes + bytes > settings_.fast_budget_bytes) {
    const uint32_t victim = node.fast.back();
    node.fast.pop_back();
    node.slow[victim] = true;
    node.fast_bytes -= datasets_[victim].bytes;
    evicted += datasets_[victim].bytes;
  }
  return evicted;
}

void ToyCluster::drop_other_replicas(uint32_t owner, uint32_t dataset) {
  for (uint32_t i = 0; i < settings_.nodes; ++i) {
    if (i == owner) continue;
    nodes_[i].slow[dataset] = false;
    if (!in_fast(nodes_[i], dataset)) continue;
    nodes_[i].fast.remove(dataset);
    nodes_[i].fast_bytes -= datasets_[dataset].bytes;
  }
}

bool ToyCluster::in_fast(const Node& node, uint32_t dataset) const {
  return std::find(node.fast.begin(), node.fast.end(), dataset) != node.fast.end();
}

double ToyCluster::busy_share() const {
  double busy = 0;
  for (const Node& node : nodes_)
    busy += static_cast<double>(std::count_if(node.free_at_s.begin(), node.free_at_s.end(),
                                              [&](double free_s) { return free_s > now_s_; }));
  return busy / (settings_.nodes * settings_.units_per_node);
}

double ToyCluster::noise() {
  return std::exp(std::normal_distribution<double>(0, settings_.noise_sigma)(generator_));
}

}  // namespace tierpilot
