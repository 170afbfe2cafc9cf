#include "swap/device/tensor_memory.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "swap/device/imports.h"
#include "swap/device/tensor_heap.h"

namespace tierpilot::swap {
namespace {

constexpr int64_t kLeastBytes = 256 << 10;

// It stays until the process ends, as tensors may.
std::atomic<TensorHeap*> heap{nullptr};

int take_tensor(void** data, size_t alignment, size_t bytes) {
  if (bytes >= kLeastBytes && bytes < size_t{1} << 62 && alignment <= TensorHeap::kAlignment) try {
      *data = heap.load(std::memory_order_acquire)->take(static_cast<int64_t>(bytes));
      if (*data) return 0;
    } catch (const std::exception&) {  // no room to remember it in
    }
  return posix_memalign(data, alignment, bytes);
}

void give_tensor(void* data) {
  auto* const tensors = heap.load(std::memory_order_acquire);
  if (!tensors->has(data)) return free(data);
  try {
    tensors->give(data);
  } catch (const std::exception&) {  // no room to remember it in: it stays taken
  }
}

// Where addresses are limited, what is reserved would be missing elsewhere.
bool wanted() {
  const char* const said = std::getenv("TIERPILOT_SWAP_HEAP");
  rlimit addresses{};
  return (!said || std::string_view(said) != "0") && getrlimit(RLIMIT_AS, &addresses) == 0 &&
         addresses.rlim_cur == RLIM_INFINITY;
}

void open_heap() {
  const auto most = 2 * static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const char* const fill = std::getenv("MALLOC_PERTURB_");
  heap = new TensorHeap(most, fill ? std::atoi(fill) & 0xff : 0);
  pthread_atfork([] { heap.load()->lock(); }, [] { heap.load()->unlock(); },
                 [] { heap.load()->unlock(); });
}

}  // namespace

void keep_tensors_in_huge_pages() {
  static const bool once = [] {
    if (!wanted()) return false;
    open_heap();
    const Import imports[] = {{"free", reinterpret_cast<void*>(&give_tensor)},
                              {"posix_memalign", reinterpret_cast<void*>(&take_tensor)}};
    return redirect("libc10.so", imports) > 0;
  }();
  (void)once;
}

int64_t trim_tensors(int64_t bytes) {
  auto* const tensors = heap.load(std::memory_order_acquire);
  return tensors ? tensors->trim(bytes) : 0;
}

void trim_all_tensors() {
  if (auto* const tensors = heap.load(std::memory_order_acquire)) tensors->trim_all();
}

}  // namespace tierpilot::swap
