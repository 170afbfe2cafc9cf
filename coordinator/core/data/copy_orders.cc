#include "coordinator/core/data/copy_orders.h"

#include <algorithm>

#include "base/log.h"

namespace tierpilot {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kAskAgainNs = 30 * kSecondNs;
constexpr int64_t kHurryNs = 3 * kSecondNs;  // who waits asks again sooner
constexpr int64_t kComesBackWithinNs = 30 * kSecondNs;

size_t at_a_time(CopyOrders::Kind kind) {
  return kind == CopyOrders::Kind::kWrite ? 4 : 1;
}

// One that cannot start tasks may well keep data.
bool is_leaving(const NodeRecord& node) {
  return node.order.kind != NodeOrder::Kind::kNone || !node.takes_none.empty();
}

}  // namespace

uint32_t nodes_that_keep(const CopyOrders::Holders& holders, uint64_t version) {
  return static_cast<uint32_t>(std::count_if(
      holders.begin(), holders.end(),
      [&](const auto& holder) { return holder.second.home && holder.second.version == version; }));
}

DatasetNeed need_of(const ClusterState& state, const DatasetVersion& what,
                    const CopyOrders::Holders& holders, const std::string& reader) {
  DatasetNeed need{what.dataset, what.version, what.bytes, false, {}, what.digest};
  for (const bool fast : {true, false})
    for (const auto& [name, replica] : holders) {
      const auto* holder = state.registry.find(name);
      if (name != reader && replica.in_fast == fast && holder && holder->can_be_asked() &&
          need.sources.size() < kMostSources)
        need.sources.push_back(holder->facts.data_address);
    }
  return need;
}

bool CopyOrders::goes_on(const std::string& node, const Order& order) const {
  const auto* record = state_.registry.find(node);
  const auto link = order.link.lock();
  return record && record->can_be_asked() && link && record->link == link;
}

CopyOrders::Orders::iterator CopyOrders::erase(Orders::iterator order) {
  const auto asked = asked_.find(order->first.second);
  auto& of_kind = asked->second[static_cast<size_t>(order->second.kind)];
  if (--of_kind == 0 && asked->second == std::array<size_t, 2>{}) asked_.erase(asked);
  return under_way_.erase(order);
}

bool CopyOrders::is_under_way(const std::string& dataset) {
  for (auto next = under_way_.lower_bound({dataset, ""});
       next != under_way_.end() && next->first.first == dataset;) {
    if (goes_on(next->first.second, next->second)) return true;
    next = erase(next);
  }
  return false;
}

CopyOrders::Asked CopyOrders::order(const DatasetVersion& what, const Holders& holders, Kind kind,
                                    Done done) {
  if (holders.empty()) return Asked::kNobody;
  bool busy = false;
  auto* node = choose(what, holders, kind, busy);
  if (!node) return busy ? Asked::kBusy : Asked::kNobody;
  const auto& name = node->facts.name;
  auto need = need_of(state_, what, holders, name);
  if (need.sources.empty() && !holders.contains(name)) return Asked::kNobody;
  const Copy copy{what.dataset, name};
  const uint64_t number = ++last_number_;
  if (const auto last = under_way_.find(copy); last != under_way_.end()) erase(last);
  under_way_[copy] = {number, kind, node->link};
  ++asked_[name][static_cast<size_t>(kind)];
  node->link->keep_dataset(
      need, [this, copy, number, kind, version = what.version, done = std::move(done)](
                Status kept) { answered(copy, number, version, kind, std::move(kept), done); });
  return Asked::kYes;
}

void CopyOrders::answered(const Copy& copy, uint64_t number, uint64_t version, Kind kind,
                          Status kept, const Done& done) {
  const auto known = under_way_.find(copy);
  const bool is_last = known != under_way_.end() && known->second.number == number;
  const bool counts = is_last && goes_on(copy.second, known->second);
  if (is_last) erase(known);
  // It may be another machine of that name by now. That it could not reach others is no cut of it.
  if (!counts)
    kept = fail(ErrorCode::kUnreachable, "its connection is another one by now");
  else if (!kept && kept.error().code == ErrorCode::kUnreachable)
    kept = fail(ErrorCode::kIo, kept.error().message);
  if (kept) {
    spdlog::info("dataset '{}': version {} is kept on node '{}' too", copy.first, version,
                 copy.second);
  } else {
    spdlog::warn("dataset '{}': no copy of version {} on node '{}': {}", copy.first, version,
                 copy.second, kept.error().message);
    if (counts) pause(copy, kind, kept.error().code);
  }
  done(copy.second, std::move(kept));
}

void CopyOrders::pause(const Copy& copy, Kind kind, ErrorCode why) {
  const bool refused = why == ErrorCode::kExhausted || why == ErrorCode::kInvalid;
  const int64_t pause_ns = kind == Kind::kRepair || refused ? kAskAgainNs : kHurryNs;
  pauses_[copy] = {state_.clock.boot_ns() + pause_ns, refused};
}

bool CopyOrders::may_take(const NodeRecord& node, const DatasetVersion& what,
                          const Holders& holders) const {
  const auto held = holders.find(node.facts.name);
  const bool has_it = held != holders.end();
  return node.can_be_asked() && !is_leaving(node) && (!has_it || !held->second.home) &&
         (node.slow_free_bytes >= what.bytes || has_it) &&
         !pause_of({what.dataset, node.facts.name});
}

NodeRecord* CopyOrders::choose(const DatasetVersion& what, const Holders& holders, Kind kind,
                               bool& busy) {
  NodeRecord* best = nullptr;
  bool best_has_it = false;
  for (auto& [name, node] : state_.registry.all()) {
    const bool has_it = holders.contains(name);
    if (!may_take(node, what, holders) || (best && best_has_it && !has_it)) continue;
    const auto asked = asked_.find(name);
    if (asked != asked_.end() && asked->second[static_cast<size_t>(kind)] >= at_a_time(kind)) {
      busy = true;
    } else if (!best || has_it > best_has_it || node.slow_free_bytes > best->slow_free_bytes) {
      best = &node;
      best_has_it = has_it;
    }
  }
  return best;
}

bool CopyOrders::may_yet(const DatasetVersion& what, const Holders& holders) {
  const auto known = state_.registry.slots().names();
  return std::any_of(known.begin(), known.end(), [&](const std::string& name) {
    const auto held = holders.find(name);
    if (held != holders.end() && held->second.home) return false;
    if (const auto* pause = pause_of({what.dataset, name}); pause && pause->refused) return false;
    const auto* node = state_.registry.find(name);
    if (node && is_leaving(*node)) return false;
    // It has not joined since the coordinator's start, or its lease has ended.
    if (!node || node->life == NodeLife::kLost)
      return state_.clock.boot_ns() - (node ? node->lease_end_ns : begun_ns_) < kComesBackWithinNs;
    const bool has_told = node->link && node->slow_free_bytes + node->fast_free_bytes > 0;
    return !has_told || node->slow_free_bytes >= what.bytes || holders.contains(name);
  });
}

bool CopyOrders::may_ask(const std::string& dataset, const std::string& node) {
  const Pause pause{state_.clock.boot_ns() + kAskAgainNs, false};
  return pauses_.try_emplace({dataset, node}, pause).second;
}

void CopyOrders::tick() {
  const int64_t now_ns = state_.clock.boot_ns();
  std::erase_if(pauses_, [&](const auto& pause) { return pause.second.until_ns <= now_ns; });
  for (auto order = under_way_.begin(); order != under_way_.end();)
    order = goes_on(order->first.second, order->second) ? std::next(order) : erase(order);
}

const CopyOrders::Pause* CopyOrders::pause_of(const Copy& copy) const {
  const auto pause = pauses_.find(copy);
  const bool lasts = pause != pauses_.end() && pause->second.until_ns > state_.clock.boot_ns();
  return lasts ? &pause->second : nullptr;
}

}  // namespace tierpilot
