#include "swap/transfers.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

namespace tierpilot::swap {

namespace {

int64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

// Of processors, that this thread has taken.
int64_t thread_ns() {
  timespec took{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &took);
  return int64_t{took.tv_sec} * 1'000'000'000 + took.tv_nsec;
}

// Of threads that no exception may leave.
template <class Copy>
auto copied(const Copy& copy) -> decltype(copy()) {
  try {
    return copy();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kExhausted, "no memory");  // short: it takes none itself
  }
}

}  // namespace

Transfers::Transfers(std::shared_ptr<TierSet> tiers, ComputeDevice& device,
                     const CopyThreads& threads, std::mutex& mutex, SlotTable& slots, Ended ended)
    : device_(device),
      pool_(std::move(tiers)),
      out_pace_(pool_.tiers().front().write_gb_per_s),
      in_pace_(pool_.tiers().front().read_gb_per_s),
      mutex_(mutex),
      slots_(slots),
      ended_(std::move(ended)),
      out_("tp-swap-out", threads.out, device, [this](Id id, Copier& c) { run_out(id, c); }),
      in_("tp-swap-in", threads.in, device, [this](Id id, Copier& c) { run_in(id, c); }) {}

// The thread that takes it waits for the lock. Where there is no memory for that, nothing is asked
// for.
void Transfers::ask(Lane& lane, Id id, ComputeDevice::Stream stream) {
  const auto after = device_.mark(stream);
  try {
    lane.push(id);
  } catch (...) {
    device_.forget(after);
    throw;
  }
  slots_.find(id)->after = after;
}

void Transfers::copy_out(Id id) {
  ask(out_, id, slots_.find(id)->stream);
  slots_.leave(id);
}

void Transfers::copy_in(Id id, std::byte* data, ComputeDevice::Stream stream) {
  ask(in_, id, stream);
  slots_.fetch(id, data);
}

// What the copy has to wait for, without the lock.
Status Transfers::reach(std::unique_lock<std::mutex>& lock, Id id) {
  const auto after = std::exchange(slots_.find(id)->after, 0);
  if (after == 0) return {};
  lock.unlock();
  auto status = copied([&] { return device_.reach(after); });
  device_.forget(after);
  lock.lock();
  return status;
}

void Transfers::forget(Id id) {
  pool_.free(slots_.remove(id));
}

void Transfers::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until) {
  changed_.wait(lock, until);
}

void Transfers::run_out(Id id, Copier& copier) {
  const auto began_ns = thread_ns();
  std::unique_lock lock(mutex_);
  const auto reached = reach(lock, id);
  // Other storages move the table while the lock is open.
  const auto slot = *slots_.find(id);
  std::optional<Block> block;
  if (reached && !slot.dropped) {
    out_pace_.began(now_ns());
    lock.unlock();
    auto written = copied([&] { return pool_.write(slot.data, slot.bytes, copier); });
    lock.lock();
    if (written)
      block = *written;
    else
      refusal_ = std::move(written.error().message);
    out_pace_.ended(now_ns(), block ? slot.bytes : 0);
  }
  if (block) {
    slots_.copied_out(id, *block);
    ++copies_out_;
    bytes_out_ += slot.bytes;
  } else if (slots_.not_copied(id)) {
    ++refused_;
  }
  ended_(*slots_.find(id), false);
  processor_ns_ += thread_ns() - began_ns;
  changed_.notify_all();
}

void Transfers::run_in(Id id, Copier& copier) {
  const auto began_ns = thread_ns();
  std::unique_lock lock(mutex_);
  auto status = reach(lock, id);
  const auto slot = *slots_.find(id);
  in_pace_.began(now_ns());
  lock.unlock();
  if (status) status = copied([&] { return pool_.read(slot.block, slot.data, copier); });
  lock.lock();
  in_pace_.ended(now_ns(), status ? slot.bytes : 0);
  slots_.copied_in(id, status.has_value());
  ++copies_in_;
  bytes_in_ += slot.bytes;
  lost_ += !status;
  ended_(*slots_.find(id), true);
  processor_ns_ += thread_ns() - began_ns;
  changed_.notify_all();
}

Link Transfers::link_in() const {
  return {.gb_per_s = in_pace_.gb_per_s(), .latency_ns = pool_.link().latency_ns};
}

Link Transfers::link() const {
  return {.gb_per_s = std::min(out_pace_.gb_per_s(), in_pace_.gb_per_s()),
          .latency_ns = pool_.link().latency_ns};
}

void Transfers::add_to(Statistics& statistics) const {
  statistics.copies_out += copies_out_;
  statistics.bytes_out += bytes_out_;
  statistics.refused += refused_;
  statistics.copies_in += copies_in_;
  statistics.bytes_in += bytes_in_;
  statistics.lost += lost_;
}

}  // namespace tierpilot::swap
