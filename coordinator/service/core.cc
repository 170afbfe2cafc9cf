#include "coordinator/service/core.h"

#include <fmt/format.h>

#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

constexpr int64_t kRetryNs = 1'000'000'000;
constexpr int64_t kPruneNs = 600'000'000'000;

}  // namespace

Core::Core(const CoreSettings& settings, const Clock& clock, Store& store, PolicyHost& policy_host,
           Dispatcher::Hooks hooks)
    : state{settings, clock, store, {}, {}, {}, {}, {}, 0, 0},
      host(policy_host),
      oversight(store, clock),
      dispatcher(state, policy_host, oversight, std::move(hooks)),
      lifecycle(
          state,
          {[this] { dispatcher.pump(); }, [this](uint64_t task) { ended(task); },
           [this](AttemptId attempt, const ServedData& data) { dispatcher.served(attempt, data); },
           [this](AttemptId attempt, bool succeeded) { dispatcher.ended(attempt, succeeded); }}),
      intake(state, [this] { dispatcher.pump(); }),
      membership(state, lifecycle),
      datasets(state, [this] { dispatcher.pump(); }) {
  dispatcher.set_lifecycle(lifecycle);
}

void Core::tick() {
  membership.expire();
  const int64_t now_ns = state.clock.boot_ns();
  if (now_ns >= next_retry_ns_) {
    next_retry_ns_ = now_ns + kRetryNs;
    lifecycle.retry_writes();
    // Without a write to try, a store that was full would be taken for full for good.
    if (!state.store.trouble().empty())
      state.store.write([now_ns](Db& db) { return records::put_setting(db, "retried_ns", now_ns); },
                        [this](Status) { dispatcher.pump(); });
  }
  if (now_ns >= next_prune_ns_) prune();
  dispatcher.pump();
}

void Core::prune() {
  next_prune_ns_ = state.clock.boot_ns() + kPruneNs;
  if (keep_history_ms <= 0) return;
  const int64_t before_ms = state.clock.wall_ms() - keep_history_ms;
  state.store.write([before_ms](Db& db) { return records::prune(db, before_ms); }, nullptr);
}

void Core::when_ended(uint64_t task, std::function<void()> done) {
  if (!state.tasks.find(task)) return done();
  waiting_[task].push_back(std::move(done));
}

void Core::ended(uint64_t task) {
  auto node = waiting_.extract(task);
  if (node.empty()) return;
  for (auto& done : node.mapped()) done();
}

Result<Task> Core::task(uint64_t id) {
  if (const auto* active = state.tasks.find(id)) return *active;
  auto stored = records::task(state.store.reader(), id);
  if (!stored) return tl::unexpected(stored.error());
  if (!*stored) return fail(ErrorCode::kNotFound, fmt::format("task {} does not exist", id));
  return std::move(**stored);
}

}  // namespace tierpilot
