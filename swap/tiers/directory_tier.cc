#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "swap/extents.h"
#include "swap/tiers/tier.h"

namespace tierpilot::swap {

Staging::Staging(Pages pages) {
  const int kind = pages == Pages::kShared ? MAP_SHARED : MAP_PRIVATE;
  void* const data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
}
Staging::~Staging() {
  munmap(data_, kBytes);
}

namespace {

// A child of a fork can use none of them, and would keep their room for as long as it lives.
// Without a lock, which somebody may hold while another one forks. More than these are not so many.
std::array<std::atomic<int>, 256> own_files;  // descriptors + 1; 0: none

void close_own_files() {
  for (auto& file : own_files)
    if (const int open = file.exchange(0)) close(open - 1);
}

class OwnFile {
 public:
  explicit OwnFile(UniqueFd file) : file_(std::move(file)) {
    static const int once = pthread_atfork(nullptr, nullptr, close_own_files);
    (void)once;
    for (auto& place : own_files) {
      int none = 0;
      if (!place.compare_exchange_strong(none, file_.get() + 1)) continue;
      place_ = &place;
      break;
    }
  }
  ~OwnFile() {
    // In a child it is closed, and its number may be another one's.
    int own = file_.get() + 1;
    if (place_ && !place_->compare_exchange_strong(own, 0)) (void)file_.release();
  }
  OwnFile(const OwnFile&) = delete;
  int get() const { return file_.get(); }

 private:
  UniqueFd file_;
  std::atomic<int>* place_ = nullptr;
};

class DirectoryTier : public Tier {
 public:
  DirectoryTier(std::string name, UniqueFd file, bool direct, int64_t bytes)
      : name_(std::move(name)), file_(std::move(file)), direct_(direct), bytes_(bytes) {}

  const std::string& name() const override { return name_; }
  std::string_view kind() const override { return "directory"; }
  int64_t capacity_bytes() const override { return bytes_; }
  bool is_memory_in_disguise() const override {
    struct statfs info {};
    return fstatfs(file_.get(), &info) == 0 &&
           (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
  }

  Status write(int64_t offset, const std::byte* data, int64_t bytes, Staging& staging) override {
    // What could not be written back is told once, to whoever asks first.
    const std::lock_guard lock(writing_);
    for (int64_t done = 0; done < bytes; done += Staging::kBytes) {
      const auto part = std::min(Staging::kBytes, bytes - done);
      std::memcpy(staging.data(), data + done, static_cast<size_t>(part));
      const auto padded = direct_ ? padding(part) : part;
      for (int64_t at = 0; at < padded;) {
        const auto wrote = pwrite(file_.get(), staging.data() + at,
                                  static_cast<size_t>(padded - at), offset + done + at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0)
          return fail_errno(wrote < 0 ? errno : ENOSPC, fmt::format("{}: write", name_));
        at += wrote;
      }
    }
    return leave_memory(offset, bytes);
  }

  Status read(int64_t offset, std::byte* data, int64_t bytes, Staging& staging) override {
    for (int64_t done = 0; done < bytes; done += Staging::kBytes) {
      const auto part = std::min(Staging::kBytes, bytes - done);
      const auto padded = direct_ ? padding(part) : part;
      for (int64_t at = 0; at < padded;) {
        const auto got = pread(file_.get(), staging.data() + at, static_cast<size_t>(padded - at),
                               offset + done + at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail_errno(got < 0 ? errno : EIO, fmt::format("{}: read", name_));
        at += got;
      }
      std::memcpy(data + done, staging.data(), static_cast<size_t>(part));
    }
    return {};
  }

 private:
  // Without direct writes, which some file systems take and do not do, its pages would stay in the
  // memory that they are to leave; and a disk that is full or fails tells only here.
  Status leave_memory(int64_t offset, int64_t bytes) {
    constexpr unsigned kWritten =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (sync_file_range(file_.get(), offset, bytes, kWritten) != 0 && errno != ENOSYS)
      return fail_errno(errno, fmt::format("{}: writing back", name_));
    posix_fadvise(file_.get(), offset, bytes, POSIX_FADV_DONTNEED);
    return {};
  }

  static int64_t padding(int64_t bytes) {
    return (bytes + Extents::kAlignment - 1) / Extents::kAlignment * Extents::kAlignment;
  }

  std::string name_;
  OwnFile file_;
  std::mutex writing_;
  bool direct_;
  int64_t bytes_;
};

// Some file systems take O_DIRECT only to refuse it with the first write.
bool writes_directly(int file) {
  Staging staging;
  std::memset(staging.data(), 0, Extents::kAlignment);
  return pwrite(file, staging.data(), Extents::kAlignment, 0) == Extents::kAlignment;
}

// Who writes beyond it is ended by SIGXFSZ.
int64_t longest_file() {
  rlimit limit{};
  constexpr auto kAny = std::numeric_limits<int64_t>::max();
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(kAny))
    return kAny;
  const auto most = static_cast<int64_t>(limit.rlim_cur);
  return most / Extents::kAlignment * Extents::kAlignment;
}

// What to do where no file can be made.
std::string_view advice(int error) {
  switch (error) {
    case ENOENT:
      return "make that folder, or name another one on a disk";
    case ENOTDIR:
      return "name a folder on a disk";
    case EACCES:
    case EPERM:
    case EROFS:
      return "name a folder on a disk, and one that this user may write to";
    case ENOSPC:
    case EDQUOT:
      return "name a folder on a disk with room";
    default:
      return "name a folder on a disk, of a file system with unnamed files (O_TMPFILE)";
  }
}

}  // namespace

Result<std::unique_ptr<Tier>> open_directory_tier(const std::string& directory, int64_t bytes) {
  const auto name = "dir:" + directory;
  const auto most = longest_file();
  if (most < Extents::kAlignment)
    return fail(ErrorCode::kExhausted,
                fmt::format("tier '{}': this process may make no file there (ulimit -f)", name));
  constexpr int kFlags = O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL;
  bytes = std::min(bytes, most);
  UniqueFd file(open(directory.c_str(), kFlags | O_DIRECT, 0600));
  const bool direct = file && writes_directly(file.get());
  if (!direct) file.reset(open(directory.c_str(), kFlags, 0600));
  if (!file) {
    const int error = errno;
    auto failed = fail_errno(error, fmt::format("tier '{}': no file can be made there", name));
    failed.value().message += fmt::format("; {}", advice(error));
    return failed;
  }
  return std::make_unique<DirectoryTier>(name, std::move(file), direct, bytes);
}

}  // namespace tierpilot::swap
