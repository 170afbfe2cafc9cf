#include "swap/device/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "swap/device/tensor_memory.h"

namespace tierpilot::swap {
namespace {

constexpr size_t kText = 4096;
constexpr const char *kStatm = "/proc/self/statm", *kStatus = "/proc/self/status";
constexpr int kMostOfGlibc = 32 << 20;
constexpr int kFreshBytes = 128 << 20;  // that the heap grows by at once, of addresses only

// Where there was no descriptor at the beginning there may be one now.
bool read_text(const UniqueFd& file, const char* path, char (&text)[kText]) {
  const UniqueFd anew(file ? -1 : open(path, O_RDONLY | O_CLOEXEC));
  const auto got = pread(file ? file.get() : anew.get(), text, kText - 1, 0);
  if (got <= 0) return false;
  text[got] = 0;
  return true;
}

// Without a descriptor: more than there is now, so that a budget is rather kept to than not.
int64_t most_so_far() {
  rusage used{};
  return getrusage(RUSAGE_SELF, &used) == 0 ? int64_t{used.ru_maxrss} * 1024 : 0;
}

// A line of /proc/PID/status, "VmHWM:    1234 kB", in bytes.
int64_t field(const char* text, const char* name) {
  const char* found = std::strstr(text, name);
  return found ? std::strtoll(found + std::strlen(name), nullptr, 10) * 1024 : 0;
}

// Where the memory begins that brk(2) gives; nullptr: there is none yet.
char* heap_begin() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with("[heap]"))
      return reinterpret_cast<char*>(std::strtoull(line.c_str(), nullptr, 16));
  return nullptr;
}

// What is given back is taken anew soon: in pages of 2 MiB where the kernel has them, as a fault
// costs the same for a small one. It has them only where nothing was touched, so the heap grows
// before anybody needs it.
void want_huge_pages() {
  static char* const begin = heap_begin();
  static const bool filled = [] {  // glibc's check writes to all that is allocated
    const char* set = std::getenv("MALLOC_PERTURB_");
    return set && std::atoi(set) != 0;
  }();
  if (filled) return;
  void* volatile top = std::malloc(kMostOfGlibc - (64 << 10));  // volatile: not to be left out
  auto* const end = static_cast<char*>(sbrk(0));
  if (begin && end > begin)
    madvise(begin, static_cast<size_t>(end - begin),
            MADV_HUGEPAGE);  // a kernel without them says no
  std::free(top);
}

}  // namespace

ProcessMemory::ProcessMemory()
    : statm_(open(kStatm, O_RDONLY | O_CLOEXEC)),
      status_(open(kStatus, O_RDONLY | O_CLOEXEC)),
      clear_(open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)) {}

int64_t ProcessMemory::now() const {
  char text[kText];
  if (!read_text(statm_, kStatm, text)) return most_so_far();
  char* at = text;
  std::strtoll(at, &at, 10);
  const auto resident = std::strtoll(at, &at, 10);
  const auto shared = std::strtoll(at, &at, 10);
  static const auto page = sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(resident - shared, 0) * page;
}

int64_t ProcessMemory::peak() const {
  char text[kText];
  if (!clear_ || !read_text(status_, kStatus, text)) return now();
  const auto anonymous = field(text, "RssAnon:");
  const auto others = field(text, "RssFile:") + field(text, "RssShmem:");
  return std::max(anonymous, field(text, "VmHWM:") - others);
}

// Five sets the high-water mark of resident memory back; see proc(5).
void ProcessMemory::reset_peak() {
  if (clear_ && pwrite(clear_.get(), "5", 1, 0) != 1) clear_.reset();
}

void ProcessMemory::own_freed_memory() {
  if (!std::getenv("MALLOC_MMAP_THRESHOLD_")) mallopt(M_MMAP_THRESHOLD, kMostOfGlibc);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, kFreshBytes);
  want_huge_pages();
  keep_tensors_in_huge_pages();
}

void ProcessMemory::give_back() {
  trim_tensors(std::numeric_limits<int64_t>::max());
  malloc_trim(0);
  want_huge_pages();
}

void ProcessMemory::give_back(int64_t bytes) {
  const auto wanted = now() - bytes;
  for (auto more = bytes; more > 0; more = now() - wanted)
    if (trim_tensors(more) == 0) break;
  if (now() <= wanted) return;
  malloc_trim(0);
  want_huge_pages();
  if (now() > wanted) trim_all_tensors();
}

}  // namespace tierpilot::swap
