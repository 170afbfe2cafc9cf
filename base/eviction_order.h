// Which replica leaves a tier next: least recently used first, in constant time but for the few
// that are in use. Plain accounting without files, locks or clocks; the dataset pool and its
// simulation are both built on it.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <iterator>

namespace tierpilot {

class TierAccount {
 public:
  explicit TierAccount(uint64_t budget) : budget_(budget) {}
  uint64_t budget() const { return budget_; }
  uint64_t used() const { return used_; }
  bool fits(uint64_t bytes) const { return used_ <= budget_ && bytes <= budget_ - used_; }
  void take(uint64_t bytes) { used_ += bytes; }
  void give(uint64_t bytes) { used_ -= bytes; }

 private:
  uint64_t budget_;
  uint64_t used_ = 0;
};

// One dataset on one node, as far as making room is concerned.
class TierReplica {
 public:
  uint64_t bytes = 0;
  int pins = 0;
  bool doomed = false;  // to be removed when nobody uses it any more
  bool busy = false;    // a transfer owns its files

  bool fast() const { return fast_; }
  bool slow() const { return slow_; }
  bool home() const { return home_; }  // never dropped for room
  bool may_leave_fast() const { return fast_ && pins == 0 && !busy; }
  // One that is promised to a request and not yet in the fast tier is about to be promoted.
  bool may_leave_slow() const { return slow_ && !home_ && !busy && (pins == 0 || fast_); }

 private:
  friend class EvictionOrder;
  using Hook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  bool fast_ = false;
  bool slow_ = false;
  bool home_ = false;
  uint64_t used_at_ = 0;
  Hook in_fast_, in_slow_;
};

// The replicas of one node. They unlink themselves when they are destroyed.
class EvictionOrder {
 public:
  void touch(TierReplica& replica) {
    replica.used_at_ = ++uses_;
    // The newest is the last, whoever is there: in a large simulation looking would take longest.
    replica.in_fast_.unlink();
    if (replica.fast_) fast_.push_back(replica);
    replica.in_slow_.unlink();
    if (replica.slow_ && !replica.home_) slow_.push_back(replica);
  }
  void set_fast(TierReplica& replica, bool fast) {
    replica.fast_ = fast;
    relink_fast(replica);
  }
  void set_slow(TierReplica& replica, bool slow) {
    replica.slow_ = slow;
    relink_slow(replica);
  }
  void set_home(TierReplica& replica, bool home) {
    replica.home_ = home;
    relink_slow(replica);
  }

  // The next one that may leave the fast tier and that `skip` does not hold back; null: none.
  template <class Skip>
  TierReplica* fast_victim(Skip skip) {
    for (TierReplica& replica : fast_)
      if (replica.may_leave_fast() && !skip(replica)) return &replica;
    return nullptr;
  }
  TierReplica* fast_victim() {
    return fast_victim([](const TierReplica&) { return false; });
  }
  TierReplica* slow_victim() {
    for (TierReplica& replica : slow_)
      if (replica.may_leave_slow()) return &replica;
    return nullptr;
  }
  // What all that may leave the slow tier add up to. Looks at each.
  uint64_t slow_droppable_bytes() const {
    uint64_t sum = 0;
    for (const TierReplica& replica : slow_)
      if (replica.may_leave_slow()) sum += replica.bytes;
    return sum;
  }

 private:
  template <TierReplica::Hook TierReplica::*hook>
  using List =
      boost::intrusive::list<TierReplica,
                             boost::intrusive::member_hook<TierReplica, TierReplica::Hook, hook>,
                             boost::intrusive::constant_time_size<false>>;

  void relink_fast(TierReplica& replica) {
    replica.in_fast_.unlink();
    if (replica.fast_) insert(fast_, fast_.end(), replica);
  }
  void relink_slow(TierReplica& replica) {
    replica.in_slow_.unlink();
    if (!replica.slow_ || replica.home_) return;
    auto from = slow_.end();
    // The oldest of the fast tier is written back to somewhere in the middle of the slow one's
    // order: before the next that is in both. Looked for from both sides, as either may be far.
    if (replica.in_fast_.is_linked()) {
      auto next = std::next(fast_.iterator_to(replica));
      while (next != fast_.end() && !next->in_slow_.is_linked() &&
             belongs_before(slow_, from, replica))
        ++next, --from;
      if (next != fast_.end() && next->in_slow_.is_linked()) from = slow_.iterator_to(*next);
    }
    insert(slow_, from, replica);
  }
  template <class Order>
  static bool belongs_before(Order& order, typename Order::iterator from, TierReplica& replica) {
    return from != order.begin() && std::prev(from)->used_at_ > replica.used_at_;
  }
  // Where its last use puts it, which is before `from` and mostly right there.
  template <class Order>
  static void insert(Order& order, typename Order::iterator from, TierReplica& replica) {
    while (belongs_before(order, from, replica)) --from;
    order.insert(from, replica);
  }

  List<&TierReplica::in_fast_> fast_;
  List<&TierReplica::in_slow_> slow_;
  uint64_t uses_ = 0;
};

}  // namespace tierpilot
