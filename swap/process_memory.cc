#include "swap/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tierpilot::swap {
namespace {

constexpr size_t kText = 4096;

bool read_text(const UniqueFd& file, char (&text)[kText]) {
  const auto got = file ? pread(file.get(), text, kText - 1, 0) : -1;
  if (got <= 0) return false;
  text[got] = 0;
  return true;
}

// A line of /proc/PID/status, "VmHWM:    1234 kB", in bytes.
int64_t field(const char* text, const char* name) {
  const char* found = std::strstr(text, name);
  return found ? std::strtoll(found + std::strlen(name), nullptr, 10) * 1024 : 0;
}

}  // namespace

ProcessMemory::ProcessMemory()
    : statm_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)),
      status_(open("/proc/self/status", O_RDONLY | O_CLOEXEC)),
      clear_(open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)) {}

int64_t ProcessMemory::now() const {
  char text[kText];
  if (!read_text(statm_, text)) return 0;
  char* at = text;
  std::strtoll(at, &at, 10);
  const auto resident = std::strtoll(at, &at, 10);
  const auto shared = std::strtoll(at, &at, 10);
  static const auto page = sysconf(_SC_PAGESIZE);
  return std::max<int64_t>(resident - shared, 0) * page;
}

int64_t ProcessMemory::peak() const {
  char text[kText];
  if (!clear_ || !read_text(status_, text)) return now();
  const auto anonymous = field(text, "RssAnon:");
  const auto others = field(text, "RssFile:") + field(text, "RssShmem:");
  return std::max(anonymous, field(text, "VmHWM:") - others);
}

// Five sets the high-water mark of resident memory back; see proc(5).
void ProcessMemory::reset_peak() {
  if (clear_ && pwrite(clear_.get(), "5", 1, 0) != 1) clear_.reset();
}

void ProcessMemory::own_freed_memory() {
  constexpr int kMostOfGlibc = 32 << 20;
  if (!std::getenv("MALLOC_MMAP_THRESHOLD_")) mallopt(M_MMAP_THRESHOLD, kMostOfGlibc);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

void ProcessMemory::give_back() {
  malloc_trim(0);
}

}  // namespace tierpilot::swap
