#include "swap/libtorch/tensor_pool.h"

#include <ATen/ATen.h>
#include <ATen/SequenceNumber.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "swap/libtorch/saved_tensor.h"

namespace tierpilot::swap::libtorch {
namespace {

// Smaller ones are many and hold little; what all of them hold is not worth a hook's time.
constexpr size_t kLeastBytes = 64 << 10;
constexpr size_t kMostIds = 64;

std::atomic<uint64_t> forks{0};

uint64_t counted_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)once;
  return forks;
}

bool is_parameter(const at::TensorBase& tensor) {
  return tensor.requires_grad() && tensor.is_leaf();
}

// Dense ones of a CPU whose storage tells their values. Parameters the program holds anyway, and
// memory that is not torch's own may be anybody's to fill anew.
bool can_leave(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || tensor.is_nested() || tensor.layout() != at::kStrided ||
      !tensor.has_storage() || tensor.is_inference() || tensor.is_quantized() || tensor.is_conj() ||
      tensor.is_neg())
    return false;
  const auto& storage = tensor.storage();
  if (storage.nbytes() < kLeastBytes || !storage.resizable() || !storage.data()) return false;
  if (is_parameter(tensor)) return false;
  return !tensor.is_view() || !is_parameter(tensor._base());
}

// Whether what is saved of it once counts for the next time. What no operator of a graph has made
// may be filled anew in between, as inputs are through `.data`.
bool can_share(const at::Tensor& tensor) {
  return tensor.requires_grad();
}

}  // namespace

TensorPool::TensorPool(tierpilot_swap* core, bool recompute)
    : core_(core), recompute_(recompute), forks_(counted_forks()), segments_(core) {
  warn();
}

std::unique_ptr<torch::autograd::SavedVariableHooks> TensorPool::hooks() {
  return std::make_unique<SavedTensor>(shared_from_this());
}

bool TensorPool::forked() const {
  return forks_ != forks.load(std::memory_order_relaxed);
}

std::optional<Handle> TensorPool::save(const at::Tensor& tensor) {
  if (forked() || !can_leave(tensor)) return std::nullopt;
  Handle handle;
  {
    const std::lock_guard lock(mutex_);
    const auto known = live_.find(Stored::key_of(tensor));
    // Without handles it has ended, and only its copy is under way.
    const bool lives = known != live_.end() && known->second->handles > 0 && can_share(tensor);
    if (lives) handle.layout = Layout(tensor);
    handle.stored = lives ? known->second : enter(tensor);
    if (!handle.stored) return std::nullopt;
    ++handle.stored->handles;
    ++handle.stored->unused;
  }
  reap();
  return handle;
}

// Nodes of the graph are numbered by thread: an operator makes its own before it saves anything.
void TensorPool::finish_others(uint64_t node) {
  const auto found = unfinished_.find(std::this_thread::get_id());
  if (found == unfinished_.end() || found->second == node) return;
  unfinished_.erase(found);
  tierpilot_swap_finished(core_);
}

void TensorPool::finish() {
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  finish_others(0);
}

// nullptr: it is not taken.
std::shared_ptr<Stored> TensorPool::enter(const at::Tensor& tensor) {
  backward_ = false;
  auto stored = std::make_shared<Stored>(tensor);
  const auto [place, kind] = places_.of(tensor);
  const auto node = at::sequence_number::peek();
  finish_others(node);
  // Some operators fill what they save of their inputs, but nothing that has a gradient.
  const uint32_t unfinished = tensor.requires_grad() ? 0 : TIERPILOT_SWAP_UNFINISHED;
  const tierpilot_swap_storage said{.place = place,
                                    .kind = kind,
                                    .flags = unfinished,
                                    .data = tensor.storage().data(),
                                    .bytes = stored->bytes()};
  // All that takes memory comes before: afterwards the core knows it, and may read it.
  // reserve() of what fits already would make the table smaller.
  if (static_cast<float>(by_id_.size() + 1) >
      by_id_.max_load_factor() * static_cast<float>(by_id_.bucket_count()))
    by_id_.reserve(2 * (by_id_.size() + 1));
  auto named = by_id_.extract(by_id_.emplace(0, stored).first);
  auto& live = live_[stored->key()];
  if (unfinished) unfinished_[std::this_thread::get_id()] = node;
  stored->id = tierpilot_swap_save(core_, &said);
  if (stored->id == 0) {
    if (!live) live_.erase(stored->key());
    return nullptr;
  }
  named.key() = stored->id;
  by_id_.insert(std::move(named));
  live = stored;
  return stored;
}

// Lets go of what has left, before the library looks whether that was enough.
void TensorPool::reap() {
  std::array<tierpilot_swap_id, kMostIds> ids;
  for (size_t count = 1; count > 0;) {
    std::vector<c10::Storage> leftovers;
    std::vector<std::shared_ptr<Stored>> ended;
    const std::lock_guard lock(mutex_);
    count = tierpilot_swap_left(core_, ids.data(), ids.size());
    for (size_t i = 0; i < count; ++i) {
      const auto found = by_id_.find(ids[i]);
      if (found == by_id_.end()) continue;
      auto& stored = *found->second;
      if (stored.handles > 0 && !stored.same_memory()) {
        stay(stored);
        continue;
      }
      leftovers.push_back(stored.let_go());
      if (stored.handles == 0) ended.push_back(forget(stored));
    }
  }
}

// Its copy is of memory that the storage has no more: it is used from here, as without a pool.
void TensorPool::stay(Stored& stored) {
  tierpilot_swap_drop(core_, stored.id);
  forget(stored);
  stored.id = 0;
}

at::Tensor TensorPool::get(Handle& handle) {
  TORCH_CHECK(!forked(),
              "tierpilot::swap: this process was forked: run backward where forward ran");
  bool begins = false;
  at::Tensor tensor;
  {
    const std::lock_guard lock(mutex_);
    begins = !std::exchange(backward_, true);
    if (begins) tell_held();
    tensor = bring(handle);
  }
  if (begins) warn();
  reap();
  return tensor;
}

at::Tensor TensorPool::bring(Handle& handle) {
  auto& stored = *handle.stored;
  stored.check();
  if (stored.id == 0) return stored.tensor(handle.layout);
  auto where = tierpilot_swap_use(core_, stored.id);
  if (where == TIERPILOT_SWAP_AWAY) fetch(stored);
  prefetch();
  if (where == TIERPILOT_SWAP_AWAY || where == TIERPILOT_SWAP_COMING)
    where = tierpilot_swap_wait(core_, stored.id);
  TORCH_CHECK(where == TIERPILOT_SWAP_HERE && stored.here(),
              "tierpilot::swap: a saved tensor cannot be read back from its memory tier: see "
              "whether the directory or node of a tier has failed");
  auto tensor = stored.tensor(handle.layout);
  mark_used(handle);
  return tensor;
}

// Another backward pass over a graph that is retained gets it from the pool again.
void TensorPool::mark_used(Handle& handle) {
  auto& stored = *handle.stored;
  if (!std::exchange(handle.used, true)) --stored.unused;
  if (stored.unused > 0 || !stored.came_back()) return;
  stored.come_back({});
  tierpilot_swap_release(core_, stored.id);
}

void TensorPool::fetch(Stored& stored) {
  const c10::InferenceMode usual(false);
  const auto room = at::empty({stored.bytes()}, at::device(at::kCPU).dtype(at::kByte));
  stored.come_back(room.storage());
  tierpilot_swap_fetch(core_, stored.id, room.data_ptr(), 0);
}

void TensorPool::prefetch() {
  std::array<tierpilot_swap_id, kMostIds> ids;
  const auto count = tierpilot_swap_ahead(core_, ids.data(), ids.size());
  try {
    for (size_t i = 0; i < count; ++i) fetch(*by_id_.at(ids[i]));
  } catch (const c10::Error&) {  // no memory for it now: it comes when it is asked for
    tierpilot_swap_failed(core_);
  }
}

// Who else holds a storage that has left: to copy it freed nothing.
void TensorPool::tell_held() {
  for (const auto& [id, stored] : by_id_)
    if (stored->held()) tierpilot_swap_held(core_, id);
}

// Wherever the last reference ends.
void TensorPool::drop(Handle& handle) {
  if (forked()) return;
  std::shared_ptr<Stored> ended;
  const std::lock_guard lock(mutex_);
  auto& stored = *handle.stored;
  --stored.handles;
  if (!handle.used) --stored.unused;
  if (stored.handles > 0 || stored.id == 0) return;
  if (tierpilot_swap_drop(core_, stored.id) == 0) ended = forget(stored);
}

// What is left of it, to be freed without the lock.
std::shared_ptr<Stored> TensorPool::forget(const Stored& stored) {
  std::shared_ptr<Stored> ended;
  const auto found = by_id_.find(stored.id);
  if (found != by_id_.end() && found->second.get() == &stored) {
    ended = std::move(found->second);
    by_id_.erase(found);
  }
  const auto live = live_.find(stored.key());
  if (live != live_.end() && live->second.get() == &stored) live_.erase(live);
  return ended;
}

void TensorPool::warn() {
  std::array<char, 1024> text;
  while (tierpilot_swap_warning(core_, text.data(), text.size()) > 0)
    TORCH_WARN("tierpilot::swap: ", text.data());
}

std::string TensorPool::describe(const char* what) const {
  std::string text(tierpilot_swap_describe(core_, what, nullptr, 0), ' ');
  for (;;) {  // it may have grown meanwhile
    const auto bytes = tierpilot_swap_describe(core_, what, text.data(), text.size() + 1);
    const bool whole = bytes <= text.size();
    text.resize(bytes);
    if (whole) return text;
  }
}

std::string TensorPool::keep() {
  std::array<char, 1024> text{};
  if (forked() || tierpilot_swap_keep(core_, text.data(), text.size()) == 0) return {};
  return text[0] ? text.data() : "plans cannot be kept";
}

}  // namespace tierpilot::swap::libtorch
