#include "policies/swap/bound/peak.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tierpilot::swap {

Peak::Peak(const Graph& graph, const Timetable& timetable, Position at,
           std::span<const float> factors)
    : graph_(graph),
      at_(at),
      storages_(static_cast<uint32_t>(graph.storages.size())),
      makes_(graph.operators.size()),
      choice_(graph.storages.size()),
      cut_(2 * graph.storages.size() + graph.operators.size()),
      fixed_bytes_(timetable.constant_bytes(at)) {
  for (StorageId storage = 0; storage < storages_; ++storage) {
    const auto& uses = timetable.uses(storage);
    const auto bytes = graph.storages[storage].bytes;
    if (graph.storages[storage].constant || uses.empty() || uses.front() > at) continue;
    if (std::binary_search(uses.begin(), uses.end(), at)) {
      fixed_bytes_ += bytes;
      continue;
    }
    choice_[storage] = true;
    choices_.push_back(storage);
    const auto maker = graph.tensors[graph.storages[storage].tensors.front()].maker;
    if (uses.back() > at) cut_.add(MinCut::kSource, node_of(storage), MinCut::kUncut);
    prices_.push_back(cut_.add(node_of(storage), node_of_absence(storage), 0));
    cut_.add(node_of_absence(storage), node_of_operator(maker), MinCut::kUncut);
    makes_[maker] = true;
  }
  need_views(timetable);
  priced_.resize(choices_.size());
  double bytes_made = 0, all_ns = 0;
  for (OperatorId op = 0; op < makes_.size(); ++op) {
    if (!makes_[op]) continue;
    makers_.push_back(op);
    const auto& [_, time_ns, args, outputs] = graph.operators[op];
    const double factor = factors.empty() ? 1 : factors[op];
    cut_.add(node_of_operator(op), MinCut::kSink,
             static_cast<int64_t>(factor * static_cast<double>(time_ns)));
    for (const auto arg : args) {
      const auto near = graph.tensors[arg].storage;
      if (choice_[near]) cut_.add(node_of_operator(op), node_of(near), MinCut::kUncut);
    }
    double bytes = 0;
    for (const auto output : outputs)
      if (graph.tensors[output].owner) bytes += static_cast<double>(graph.storage_of(output).bytes);
    bytes_made += bytes;
    all_ns += static_cast<double>(time_ns);
  }
  const double mean = all_ns / std::max(bytes_made, 1.0);
  least_price_ = mean / 100;
  most_price_ = mean * 100;
}

// What the program reads afterwards of a storage that is made again, it has to view again.
void Peak::need_views(const Timetable& timetable) {
  std::vector<char> needed(graph_.tensors.size());
  for (OperatorId op = at_ + 1; op < graph_.operators.size(); ++op)
    for (const auto arg : graph_.operators[op].args) needed[arg] = true;
  for (const auto output : graph_.outputs) needed[output] = true;
  for (auto tensor = static_cast<TensorId>(needed.size()); tensor-- > 0;) {
    const auto& [maker, storage, owner] = graph_.tensors[tensor];
    if (!needed[tensor] || owner || maker == kNone || maker >= at_ || !choice_[storage]) continue;
    if (timetable.uses(storage).back() <= at_) continue;
    cut_.add(node_of_absence(storage), node_of_operator(maker), MinCut::kUncut);
    makes_[maker] = true;
    for (const auto arg : graph_.operators[maker].args)
      if (graph_.tensors[arg].storage == storage) needed[arg] = true;
  }
}

int64_t Peak::solve(double price) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    const double cost = price * static_cast<double>(graph_.storages[choices_[i]].bytes);
    const auto now = static_cast<int64_t>(std::fmin(cost, 1e15));
    cut_.grow(prices_[i], now - priced_[i]);
    priced_[i] = now;
  }
  return cut_.solve();
}

bool Peak::made_again(StorageId storage) const {
  return cut_.on_source_side(node_of(storage)) && cut_.on_source_side(node_of_absence(storage));
}

bool Peak::available(StorageId storage) const {
  return cut_.on_source_side(node_of(storage)) && !made_again(storage);
}

int64_t Peak::available_bytes() const {
  int64_t sum = 0;
  for (const auto storage : choices_)
    if (available(storage)) sum += graph_.storages[storage].bytes;
  return sum;
}

int64_t Peak::made_again_ns() const {
  int64_t sum = 0;
  for (const auto op : makers_)
    if (cut_.on_source_side(node_of_operator(op))) sum += graph_.operators[op].time_ns;
  return sum;
}

double carried_bytes(const Timetable& timetable, const Link& link, Position at, double again_ns) {
  if (!link.exists()) return 0;
  const auto end = timetable.end();
  const auto before = static_cast<double>(timetable.start_ns(at));
  const auto after =
      static_cast<double>(timetable.start_ns(end) - timetable.start_ns(std::min(at + 1, end)));
  return link.gb_per_s * std::min(before, after + again_ns);
}

double dearest_price(const Link& link) {
  return link.exists() ? 1 / link.gb_per_s : std::numeric_limits<double>::infinity();
}

std::vector<double> price_ladder(double least, double most, size_t rungs) {
  std::vector<double> prices;
  for (size_t i = 0; i < rungs; ++i)
    prices.push_back(
        least * std::pow(most / least, static_cast<double>(i) / static_cast<double>(rungs - 1)));
  return prices;
}

}  // namespace tierpilot::swap
