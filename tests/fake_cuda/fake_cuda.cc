// In place of the CUDA driver: the calls that the swapping library makes, at their binary
// interface.
#include "fake_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace {

// What is pinned is there.
void populate(char* data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes + page - 1) / page * page;
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

constexpr int kInvalid = 1, kNoMemory = 2, kNotInitialised = 3, kAlreadyPinned = 712;

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = true;
};

class Stream {
 public:
  Stream() : thread_([this](const std::stop_token& ending) { run(ending); }) {}
  ~Stream() { thread_.request_stop(); }
  void push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    wake_.notify_all();
  }

 private:
  void run(const std::stop_token& ending) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, ending, [this] { return !works_.empty(); })) {
      const auto work = std::move(works_.front());
      works_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // who does not wait is seen
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::function<void()>> works_;
  std::jthread thread_;
};

struct Driver {
  std::mutex mutex;
  bool begun = false;
  int failing = 0;
  std::map<char*, size_t> pinned;
  fake_cuda_counts counts{};
};
thread_local int contexts_pushed = 0;

Driver& driver() {
  static auto* const one = new Driver;  // streams may end after everything
  return *one;
}

Stream& default_stream() {
  static auto* const one = new Stream;
  return *one;
}

Stream& stream_of(void* stream) {
  return stream ? *static_cast<Stream*>(stream) : default_stream();
}

// FAKE_CUDA_MB_PER_S: what the link carries.
void copy(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  if (const char* rate = std::getenv("FAKE_CUDA_MB_PER_S"))
    std::this_thread::sleep_for(
        std::chrono::microseconds(bytes / std::strtoull(rate, nullptr, 10)));
}

// Counts it; whether the copy may be.
int host_side(const void* host, size_t bytes) {
  auto& d = driver();
  const std::lock_guard lock(d.mutex);
  if (contexts_pushed == 0) return kNotInitialised;
  if (d.failing > 0) return --d.failing, kInvalid;
  auto* const begin = static_cast<char*>(const_cast<void*>(host));
  auto piece = d.pinned.upper_bound(begin);
  const bool after = piece != d.pinned.end() && begin + bytes > piece->first;
  const bool inside = piece != d.pinned.begin() && (--piece, begin < piece->first + piece->second);
  if ((inside && begin + bytes > piece->first + piece->second) || (!inside && after)) {
    ++d.counts.across_pins;
    return kInvalid;
  }
  ++(inside ? d.counts.pinned_copies : d.counts.other_copies);
  return 0;
}

}  // namespace

extern "C" {

void fake_cuda_launch(uint64_t stream, void (*work)(void*), void* argument) {
  stream_of(reinterpret_cast<void*>(stream)).push([=] { work(argument); });
}
void fake_cuda_fail_copies(int count) {
  const std::lock_guard lock(driver().mutex);
  driver().failing = count;
}
fake_cuda_counts fake_cuda_count(void) {
  const std::lock_guard lock(driver().mutex);
  return driver().counts;
}

int cuInit(unsigned flags) {
  driver().begun = flags == 0;
  return std::getenv("FAKE_CUDA_BROKEN") ? kNotInitialised : 0;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kNoMemory ? "out of memory" : "a failure of the stand-in";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return driver().begun ? 0 : kNotInitialised;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < 2 ? 0 : kInvalid;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard lock(driver().mutex);
  ++driver().counts.contexts;
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(device + 1));
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const std::lock_guard lock(driver().mutex);
  --driver().counts.contexts;
  return 0;
}
int cuCtxPushCurrent_v2(void*) {
  return ++contexts_pushed, 0;
}
int cuCtxPopCurrent_v2(void** context) {
  return *context = nullptr, --contexts_pushed, 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  *stream = new Stream;
  const std::lock_guard lock(driver().mutex);
  ++driver().counts.streams;
  return flags == 1 ? 0 : kInvalid;
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  const std::lock_guard lock(driver().mutex);
  --driver().counts.streams;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  Event done;
  done.done = false;
  stream_of(stream).push([&done] {
    const std::lock_guard lock(done.mutex);
    done.done = true;
    done.changed.notify_all();
  });
  std::unique_lock lock(done.mutex);
  done.changed.wait(lock, [&done] { return done.done; });
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  const std::lock_guard lock(driver().mutex);
  ++driver().counts.events;
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  const std::lock_guard lock(driver().mutex);
  --driver().counts.events;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  if (contexts_pushed == 0) return kNotInitialised;
  auto* const e = static_cast<Event*>(event);
  {
    const std::lock_guard lock(e->mutex);
    e->done = false;
  }
  stream_of(stream).push([e] {
    const std::lock_guard lock(e->mutex);
    e->done = true;
    e->changed.notify_all();
  });
  return 0;
}
int cuEventSynchronize(void* event) {
  auto* const e = static_cast<Event*>(event);
  std::unique_lock lock(e->mutex);
  e->changed.wait(lock, [e] { return e->done; });
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  if (const int code = host_side(to, bytes)) return code;
  stream_of(stream).push([=] { copy(to, reinterpret_cast<void*>(from), bytes); });
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  if (const int code = host_side(from, bytes)) return code;
  stream_of(stream).push([=] { copy(reinterpret_cast<void*>(to), from, bytes); });
  return 0;
}
int cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  populate(static_cast<char*>(data), bytes);
  auto& d = driver();
  const std::lock_guard lock(d.mutex);
  if (contexts_pushed == 0) return kNotInitialised;
  if (std::getenv("FAKE_CUDA_PINS_NOTHING")) return kNoMemory;
  if (!d.pinned.try_emplace(static_cast<char*>(data), bytes).second) return kAlreadyPinned;
  d.counts.pinned_bytes += static_cast<int64_t>(bytes);
  return 0;
}
int cuMemHostUnregister(void* data) {
  auto& d = driver();
  const std::lock_guard lock(d.mutex);
  const auto piece = d.pinned.find(static_cast<char*>(data));
  if (piece == d.pinned.end()) return kInvalid;
  d.counts.pinned_bytes -= static_cast<int64_t>(piece->second);
  d.pinned.erase(piece);
  return 0;
}
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  *address = reinterpret_cast<unsigned long long>(std::calloc(1, bytes));
  return *address ? 0 : kNoMemory;
}
int cuMemFree_v2(unsigned long long address) {
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
}
