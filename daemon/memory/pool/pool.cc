#include "daemon/memory/pool/pool.h"

#include <fmt/format.h>

#include "daemon/memory/pool/names.h"
#include "daemon/memory/pool/pool_state.h"

namespace tierpilot {
namespace {

constexpr int kMaxWorkers = 64;
// Room for sums of sizes, and far above any file system's limit.
constexpr uint64_t kMaxBudgetBytes = uint64_t{1} << 60;

Status check(const PoolOptions& options) {
  const auto invalid = [](std::string why) { return fail(ErrorCode::kInvalid, std::move(why)); };
  if (options.fast_dir.empty()) return invalid("dataset pool: fast_dir is not set");
  if (options.slow_dir.empty()) return invalid("dataset pool: slow_dir is not set");
  if (options.slow_kind != "directory" && options.slow_kind != "numa")
    return invalid(fmt::format("dataset pool: slow_kind '{}' is neither 'directory' nor 'numa'",
                               options.slow_kind));
  if (options.slow_kind == "directory" && options.slow_numa_node >= 0)
    return invalid("dataset pool: slow_numa_node needs slow_kind 'numa'");
  for (const auto& [key, bytes] : {std::pair("fast_budget_bytes", options.fast_budget_bytes),
                                   std::pair("slow_budget_bytes", options.slow_budget_bytes)})
    if (bytes == 0 || bytes > kMaxBudgetBytes)
      return invalid(fmt::format("dataset pool: {} is {}: give 1 to 2^60", key, bytes));
  if (options.workers < 1 || options.workers > kMaxWorkers)
    return invalid(
        fmt::format("dataset pool: workers is {}: give 1 to {}", options.workers, kMaxWorkers));
  return {};
}

}  // namespace

std::string_view copy_state_name(CopyState state) {
  switch (state) {
    case CopyState::kAbsent:
      return "absent";
    case CopyState::kGood:
      return "good";
    case CopyState::kDamaged:
      return "damaged";
  }
  return "unknown";
}

Result<std::unique_ptr<Pool>> Pool::open(PoolOptions options, std::shared_ptr<RemoteSource> remote,
                                         Post post, OnChange on_change) {
  if (auto status = check(options); !status) return tl::unexpected(status.error());
  auto outbox = std::make_shared<Outbox>(std::move(post));
  auto manager =
      ReplicaManager::open(options, std::move(remote), [outbox, on_change](const auto& change) {
        outbox->add([on_change, change] { on_change(change); });
      });
  if (!manager) return tl::unexpected(manager.error());
  return std::unique_ptr<Pool>(
      new Pool(std::make_unique<State>(outbox, std::move(*manager), options.workers)));
}

Pool::Pool(std::unique_ptr<State> state) : state_(std::move(state)) {}

Pool::~Pool() {
  state_->close();
  state_->outbox->flush();
}

void Pool::serve(std::string owner, std::vector<ServeItem> items, ServeDone done) {
  auto request = std::make_shared<Request>();
  request->owner = std::move(owner);
  request->items = std::move(items);
  request->done = std::move(done);
  state_->accept(std::move(request));
  state_->outbox->flush();
}

void Pool::cancel(const std::string& owner) {
  state_->cancel(owner);
  state_->outbox->flush();
}

void Pool::finish(const std::string& owner, bool success, FinishDone done) {
  state_->begin_finish(owner, success, std::move(done));
  state_->outbox->flush();
}

void Pool::create(const std::string& name, CreateSource source, CreateDone done) {
  state_->run(state_->keepers, [state = state_.get(), name, source = std::move(source),
                                done = std::move(done)] {
    const auto valid = check_dataset_name(name);
    auto result = valid ? state->manager->new_datasets.create(name, source, state->closing)
                        : Result<ReplicaChange>(tl::unexpected(valid.error()));
    state->complete(done, std::move(result));
  });
}

void Pool::drop(const std::string& name, uint64_t below_version, StatusDone done) {
  auto status = check_dataset_name(name);
  // Now: one that is made of that name later is another.
  if (status) state_->manager->doomed.doom(name, below_version);
  state_->run(state_->settler,
              [state = state_.get(), status = std::move(status), done = std::move(done)] {
                state->manager->doomed.sweep();
                state->complete(done, status);
              });
}

void Pool::discard(const DatasetId& id, StatusDone done) {
  auto status = check_dataset_id(id);
  // Now: a writer's request may be right behind.
  if (status) state_->manager->doomed.doom_one(id);
  state_->run(state_->settler,
              [state = state_.get(), status = std::move(status), done = std::move(done)] {
                state->manager->doomed.sweep();
                state->complete(done, status);
              });
}

void Pool::set_home(const DatasetId& id, bool home, StatusDone done) {
  state_->run(state_->keepers, [state = state_.get(), id, home, done = std::move(done)] {
    auto status = check_dataset_id(id);
    if (status) status = state->manager->homes.set_home(id, home, state->closing);
    state->complete(done, std::move(status));
  });
}

void Pool::keep(ServeItem item, CreateDone done) {
  state_->run(state_->keepers,
              [state = state_.get(), item = std::move(item), done = std::move(done)] {
                const auto valid = check_dataset_id(item.id());
                auto result = valid ? state->manager->homes.keep(item, state->closing)
                                    : Result<ReplicaChange>(tl::unexpected(valid.error()));
                state->complete(done, std::move(result));
              });
}

void Pool::promote(const DatasetId& id, StatusDone done) {
  state_->run(state_->keepers, [state = state_.get(), id, done = std::move(done)] {
    auto status = check_dataset_id(id);
    if (status) status = state->manager->loader.promote(id, state->closing);
    state->complete(done, std::move(status));
  });
}

void Pool::demote(const DatasetId& id, StatusDone done) {
  state_->run(state_->settler, [state = state_.get(), id, done = std::move(done)] {
    auto status = check_dataset_id(id);
    if (status) status = state->manager->room.demote(id, state->closing);
    state->complete(done, std::move(status));
  });
}

void Pool::verify(const DatasetId& id, CheckDone done) {
  state_->run(state_->keepers, [state = state_.get(), id, done = std::move(done)] {
    const auto valid = check_dataset_id(id);
    auto result = valid ? state->manager->checks.verify(id, state->closing)
                        : Result<ReplicaCheck>(tl::unexpected(valid.error()));
    if (valid) state->manager->homes.mend(id, state->closing);
    state->complete(done, std::move(result));
  });
}

Result<size_t> Pool::read(const DatasetId& id, uint64_t offset, std::span<std::byte> into) {
  if (auto status = check_dataset_id(id); !status) return tl::unexpected(status.error());
  return state_->manager->reader.read(id, offset, into);
}

std::vector<ReplicaChange> Pool::replicas() const {
  return state_->manager->reader.replicas();
}

PoolUsage Pool::usage() const {
  PoolUsage usage = state_->manager->reader.usage();
  std::lock_guard lock(state_->mutex);
  usage.waiting_requests = state_->requests.waiting.size();
  return usage;
}

PoolTotals Pool::totals() const {
  const MovementTotals movement = state_->manager->totals();
  std::lock_guard lock(state_->mutex);
  return {state_->totals, movement};
}

}  // namespace tierpilot
