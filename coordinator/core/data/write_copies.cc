#include "coordinator/core/data/write_copies.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/data/discard.h"

namespace tierpilot {
namespace {

constexpr uint32_t kMostFailures = 8;  // of copies, for one write
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

void WriteCopies::begin(uint64_t task, const std::string& node,
                        const std::vector<DatasetVersion>& written) {
  resume(task, written);
  for (const auto& what : written)
    if (auto* holders = holders_of(what))
      (*holders)[node] = {what.version, what.bytes, true, true, true, what.digest};
  look_at(waits_.at(task));
}

void WriteCopies::resume(uint64_t task, const std::vector<DatasetVersion>& written) {
  waits_[task] = {.written = written, .since_ns = state_.clock.boot_ns(), .settled = [this, task] {
                    settled_(task);
                  }};
  for (const auto& what : written)
    if (auto* entry = state_.catalog.find(what.dataset)) entry->next = {what, {}};
}

void WriteCopies::when_kept(const DatasetVersion& what, std::function<void()> done) {
  look_at(others_.emplace_back(
      Wait{.written = {what}, .since_ns = state_.clock.boot_ns(), .settled = std::move(done)}));
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
  for (const auto& [task, wait] : waits_) tasks.push_back(task);
  return tasks;
}

void WriteCopies::end(uint64_t task, bool published) {
  const auto wait = waits_.extract(task);
  if (!wait) return;
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
  // Whoever is told may end it.
  for (const uint64_t task : tasks())
    if (const auto wait = waits_.find(task); wait != waits_.end()) look_at(wait->second);
  for (auto& wait : others_) look_at(wait);
  others_.remove_if([](const Wait& wait) { return !wait.settled; });
}

// A node has time for one more.
void WriteCopies::look_further() {
  for (const uint64_t task : tasks())
    if (const auto wait = waits_.find(task); wait != waits_.end() && look_at(wait->second)) return;
  for (auto& wait : others_)
    if (look_at(wait)) return;
}

bool WriteCopies::look_at(Wait& wait) {
  if (!wait.settled) return false;
  bool all = true, some = false, ordered = false;
  for (const auto& what : wait.written) {
    const auto standing = look_at(what, wait);
    all &= standing == Standing::kSettled;
    some |= standing == Standing::kUnderWay;
    ordered |= standing == Standing::kOrdered;
  }
  const int64_t now_ns = state_.clock.boot_ns();
  if (some || ordered) wait.since_ns = now_ns;
  if (all || now_ns - wait.since_ns >= kPatienceNs) std::exchange(wait.settled, nullptr)();
  return ordered;
}

WriteCopies::Standing WriteCopies::look_at(const DatasetVersion& what, const Wait& wait) {
  const auto* holders = holders_of(what);
  if (!holders) return Standing::kSettled;
  const uint32_t kept = nodes_that_keep(*holders, what.version);
  const uint32_t wanted = state_.catalog.find(what.dataset)->dataset.replicas;
  if (kept > 0 && kept >= wanted) return Standing::kSettled;
  if (orders_.is_under_way(what.dataset)) return Standing::kUnderWay;
  const bool gives_up = wait.failures >= kMostFailures;
  if (!gives_up) {
    const auto asked = orders_.order(
        what, *holders, CopyOrders::kHurried,
        [this, what](const std::string& node, const Status& done) { copied(what, node, done); });
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

void WriteCopies::copied(const DatasetVersion& what, const std::string& node, const Status& kept) {
  auto* holders = holders_of(what);
  auto* entry = state_.catalog.find(what.dataset);
  auto* record = state_.registry.find(node);
  if (kept && holders) {
    auto& copy = (*holders)[node];
    copy = {what.version, what.bytes, copy.in_fast, true, true, what.digest};
  } else if (kept && entry && record) {
    discard(*entry, *record, what);  // it was made for an end that came to nothing
  }
  const bool failed = !kept && kept.error().code != ErrorCode::kUnreachable;
  const auto is_of = [&](const Wait& wait) {
    return std::any_of(wait.written.begin(), wait.written.end(), [&](const auto& written) {
      return written.dataset == what.dataset && is(written, what);
    });
  };
  const auto told = [&](Wait& wait) {
    if (!is_of(wait)) return;
    wait.failures += failed;
    if (!kept) wait.failed_ns = state_.clock.boot_ns();
    look_at(wait);
  };
  for (const uint64_t task : tasks())
    if (const auto wait = waits_.find(task); wait != waits_.end()) told(wait->second);
  for (auto& wait : others_) told(wait);
  look_further();
}

}  // namespace tierpilot
