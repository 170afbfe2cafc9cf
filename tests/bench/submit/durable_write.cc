#include "tests/bench/submit/durable_write.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace tierpilot::bench {
namespace {

constexpr size_t kWriteBytes = 4096 + 24;  // a page in SQLite's write-ahead log
constexpr int kSlots = 512;

void require(bool done, const std::filesystem::path& path) {
  if (!done) throw std::system_error(errno, std::generic_category(), path.string());
}

}  // namespace

double durable_writes_per_s(const std::filesystem::path& folder, int count) {
  const auto path = folder / "floor";
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  require(static_cast<bool>(file), path);
  const std::string bytes(kWriteBytes, 'x');
  const auto write_slot = [&](int slot) {
    const auto at = static_cast<off_t>(kWriteBytes) * (slot % kSlots);
    require(pwrite(file.get(), bytes.data(), bytes.size(), at) == ssize_t{kWriteBytes}, path);
  };
  for (int slot = 0; slot < kSlots; ++slot) write_slot(slot);
  require(fsync(file.get()) == 0, path);
  const int64_t start_ns = system_clock().boot_ns();
  for (int i = 0; i < count; ++i) {
    write_slot(i);
    require(fdatasync(file.get()) == 0, path);
  }
  return count / (static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9);
}

}  // namespace tierpilot::bench
