#include "coordinator/core/data/write_copies.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/data/discard.h"

namespace tierpilot {
namespace {

constexpr uint32_t kMostFailures = 8, kMostCuts = 60;  // of copies, for one write
// At 1,000 nodes looking for one that takes a copy is a fraction of a millisecond.
constexpr size_t kLooksAtATick = 64, kLooksAfterACopy = 4;
// For nodes to come back that were just restarted, or lost their connections.
constexpr int64_t kPatienceNs = 30'000'000'000;

bool is(const DatasetVersion& a, const DatasetVersion& b) {
  return a.version == b.version && a.digest == b.digest;
}

}  // namespace

bool WriteCopies::are_wanted(const ClusterState& state, const TaskExit& exit) {
  return std::any_of(exit.written.begin(), exit.written.end(), [&](const auto& written) {
    const auto* entry = state.catalog.find(written.dataset);
    return entry && entry->dataset.replicas > 1 && written.digest.known();
  });
}

bool WriteCopies::were_wanted(const ClusterState& state, const Task& task) {
  return task.is_copied() && are_wanted(state, *task.exit) &&
         std::all_of(task.exit->written.begin(), task.exit->written.end(),
                     [&](const auto& written) {
                       const auto* entry = state.catalog.find(written.dataset);
                       return entry && written.version == entry->dataset.version + 1;
                     });
}

void WriteCopies::begin(const Task& task) {
  resume(task);
  for (const auto& what : task.exit->written)
    if (auto* holders = holders_of(what))
      (*holders)[task.node] = {what.version, what.bytes, true, true, true, what.digest};
  look_at(task.id);
}

void WriteCopies::resume(const Task& task) {
  waits_[task.id] = {.node = task.node,
                     .written = task.exit->written,
                     .since_ns = state_.clock.boot_ns(),
                     .settled = [this, id = task.id] { settled_(id); }};
  if (auto* node = state_.registry.find(task.node)) node->being_copied.insert(task.id);
  for (const auto& what : task.exit->written)
    if (auto* entry = state_.catalog.find(what.dataset)) entry->next = {what, {}};
}

void WriteCopies::when_kept(const DatasetVersion& what, std::function<void()> done) {
  const uint64_t key = next_key_++;
  waits_[key] = {.node = {},
                 .written = {what},
                 .since_ns = state_.clock.boot_ns(),
                 .settled = std::move(done)};
  look_at(key);
}

CopyOrders::Holders* WriteCopies::holders_of(const DatasetVersion& what) const {
  auto* entry = state_.catalog.find(what.dataset);
  if (entry && entry->next && is(entry->next->what, what)) return &entry->next->copies;
  return entry && is(entry->dataset.current(), what) ? &entry->replicas : nullptr;
}

bool WriteCopies::are_there(uint64_t task) const {
  const auto wait = waits_.find(task);
  if (wait == waits_.end()) return false;
  const auto& written = wait->second.written;
  return std::all_of(written.begin(), written.end(), [&](const auto& what) {
    const auto* holders = holders_of(what);
    return holders && nodes_that_keep(*holders, what.version) > 0;
  });
}

std::vector<uint64_t> WriteCopies::tasks() const {
  std::vector<uint64_t> tasks;
  for (auto wait = waits_.begin(); wait != waits_.end() && wait->first < kAboveTasks; ++wait)
    tasks.push_back(wait->first);
  return tasks;
}

void WriteCopies::end(uint64_t task, bool published) {
  const auto wait = waits_.extract(task);
  if (!wait) return;
  if (auto* node = state_.registry.find(wait.mapped().node)) node->being_copied.erase(task);
  for (const auto& what : wait.mapped().written) {
    auto* entry = state_.catalog.find(what.dataset);
    if (!entry || !entry->next || !is(entry->next->what, what)) continue;
    const auto next = std::exchange(entry->next, std::nullopt);
    if (published) continue;
    for (const auto& [name, replica] : next->copies)
      if (auto* node = state_.registry.find(name)) discard(*entry, *node, what);
  }
}

void WriteCopies::tick() {
  look_at_some(kLooksAtATick);
}

void WriteCopies::look_at_some(size_t most) {
  // Each once at most; whoever is told may end it, and others.
  for (size_t left = waits_.size(); left > 0 && most > 0; --left) {
    auto wait = waits_.upper_bound(looked_at_);
    if (wait == waits_.end()) wait = waits_.begin();
    if (wait == waits_.end()) return;
    looked_at_ = wait->first;
    most -= look_at(wait->first);
  }
}

bool WriteCopies::look_at(uint64_t key) {
  bool all = true, some = false, looked = false;
  for (const auto& what : std::vector(waits_.at(key).written)) {
    const auto standing = look_at(what, key);
    all &= standing == Standing::kSettled;
    some |= standing == Standing::kUnderWay || standing == Standing::kOrdered;
    looked |= standing == Standing::kOrdered || standing == Standing::kNobody;
  }
  auto& wait = waits_.at(key);
  const int64_t now_ns = state_.clock.boot_ns();
  if (some) wait.since_ns = now_ns;
  if (!all && now_ns - wait.since_ns < kPatienceNs) return looked;
  // A task's is ended by who is told.
  const auto settled = wait.settled;
  if (key >= kAboveTasks) waits_.erase(key);
  settled();
  return looked;
}

WriteCopies::Standing WriteCopies::look_at(const DatasetVersion& what, uint64_t key) {
  const auto* holders = holders_of(what);
  if (!holders) return Standing::kSettled;
  const uint32_t kept = nodes_that_keep(*holders, what.version);
  const uint32_t wanted = state_.catalog.find(what.dataset)->dataset.replicas;
  if (kept > 0 && kept >= wanted) return Standing::kSettled;
  if (orders_.is_under_way(what.dataset)) return Standing::kUnderWay;
  const auto& wait = waits_.at(key);
  const bool gives_up = wait.failures >= kMostFailures || wait.cuts >= kMostCuts;
  if (!gives_up) {
    const auto asked =
        orders_.order(what, *holders, CopyOrders::Kind::kWrite,
                      [this, key, what](const std::string& node, const Status& done) {
                        copied(key, what, node, done);
                      });
    if (asked == CopyOrders::Asked::kYes) return Standing::kOrdered;
    if (asked == CopyOrders::Asked::kBusy) return Standing::kUnderWay;
  }
  if (kept == 0) return Standing::kNobody;
  // Who has it comes back or is lost, and only then it is known what is left.
  if (!is_there(*holders, wait.failed_ns)) return Standing::kUnderWay;
  return gives_up || !orders_.may_yet(what, *holders) ? Standing::kSettled : Standing::kNobody;
}

bool WriteCopies::is_there(const CopyOrders::Holders& holders, int64_t since_ns) const {
  return std::any_of(holders.begin(), holders.end(), [&](const auto& holder) {
    const auto* node = state_.registry.find(holder.first);
    return node && node->can_be_asked() && holder.second.home &&
           node->lease_end_ns - state_.settings.lease_ms * 1'000'000 > since_ns;
  });
}

void WriteCopies::copied(uint64_t key, const DatasetVersion& what, const std::string& node,
                         const Status& kept) {
  auto* holders = holders_of(what);
  auto* entry = state_.catalog.find(what.dataset);
  auto* record = state_.registry.find(node);
  if (kept && holders) {
    auto& copy = (*holders)[node];
    copy = {what.version, what.bytes, copy.in_fast, true, true, what.digest};
  } else if (kept && entry && record) {
    discard(*entry, *record, what);  // it was made for an end that came to nothing
  }
  // Of a task it may be about another attempt's by now.
  const auto wait = waits_.find(key);
  const bool waits =
      wait != waits_.end() &&
      std::any_of(wait->second.written.begin(), wait->second.written.end(),
                  [&](const auto& one) { return one.dataset == what.dataset && is(one, what); });
  if (waits) {
    if (!kept) {
      const bool was_cut = kept.error().code == ErrorCode::kUnreachable;
      ++(was_cut ? wait->second.cuts : wait->second.failures);
      wait->second.failed_ns = state_.clock.boot_ns();
    }
    // One whose connection broke is not asked anew before that is known.
    if (kept || kept.error().code != ErrorCode::kUnreachable) look_at(key);
  }
  look_at_some(kLooksAfterACopy);
}

}  // namespace tierpilot
