#include "daemon/memory/pool/replicas/new_content.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

namespace tierpilot {
namespace {

bool is_unchanged(const struct stat& before, const struct stat& now) {
  return before.st_size == now.st_size && before.st_mtim.tv_sec == now.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
}

// What the daemon may read is not what everybody may who may name a file to it. Of the file that is
// open, and of the folders where it is now.
Status everybody_may_read(int fd, const std::string& what) {
  const auto hidden = [&](const std::string& by) {
    return fail(ErrorCode::kDenied,
                fmt::format("{} is not read for others, as {} keeps some of this machine's users "
                            "out: let everybody read it (chmod o+r, and o+x of its folders)",
                            what, by));
  };
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, what);
  if (!(info.st_mode & S_IROTH)) return hidden("its mode");
  std::error_code error;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
  if (error) return fail_errno(error.value(), what);
  for (auto above = path.parent_path();; above = above.parent_path()) {
    if (::stat(above.c_str(), &info) != 0) return fail_errno(errno, above.native());
    if (!(info.st_mode & S_IXOTH)) return hidden(fmt::format("folder '{}'", above.native()));
    if (above == above.root_path()) return {};
  }
}

Result<NewContent> open_source(const ImportOpenFile& source) {
  const std::string what = fmt::format("source '{}'", source.path);
  const auto& fd = source.file;
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return fail_errno(errno, what);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kInvalid,
                what + (S_ISDIR(info.st_mode) ? " is a directory" : " is not a regular file"));
  const auto bytes = static_cast<uint64_t>(info.st_size);
  return NewContent{bytes, [=](int to, const CancelFlag& cancel) -> Result<ContentDigest> {
                      auto digest = copy_bytes(fd->get(), to, bytes, what, cancel);
                      std::byte beyond;
                      const auto more = read_at(fd->get(), {&beyond, 1}, bytes, what);
                      if (digest && more && *more > 0)
                        return fail(ErrorCode::kInvalid,
                                    fmt::format("{} has more than the {} bytes that it says: add "
                                                "a copy of it",
                                                what, bytes));
                      struct stat now {};
                      if (digest && (::fstat(fd->get(), &now) != 0 || !is_unchanged(info, now)))
                        return fail(ErrorCode::kConflict, what + " changed while it was copied");
                      return digest;
                    }};
}

Result<NewContent> open_source(const ImportFile& source) {
  // O_NONBLOCK: a FIFO would wait for a writer.
  auto fd =
      std::make_shared<UniqueFd>(::open(source.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto what = fmt::format("source '{}'", source.path);
  if (!*fd) return fail_errno(errno, what + " cannot be opened");
  if (source.of_everyone)
    if (auto may = everybody_may_read(fd->get(), what); !may) return tl::unexpected(may.error());
  return open_source(ImportOpenFile{std::move(fd), source.path});
}

// Writes `bytes` bytes that `next` gives chunk by chunk.
template <class Next>
NewContent generated(uint64_t bytes, Next next) {
  return {bytes, [bytes, next](int to, const CancelFlag& cancel) mutable -> Result<ContentDigest> {
            CopyBuffer buffer;
            ContentHasher hasher;
            for (uint64_t offset = 0; offset < bytes;) {
              if (cancel) return cancelled("creating");
              const auto chunk = buffer.first(bytes - offset);
              next(chunk);
              hasher.add(chunk);
              if (auto status = write_at(to, chunk, offset, "writing"); !status)
                return tl::unexpected(status.error());
              offset += chunk.size();
            }
            return hasher.digest();
          }};
}

// Zeros are written out: blocks that are merely allocated would be read without touching the disk.
Result<NewContent> open_source(const ZeroFill& source) {
  return generated(source.bytes,
                   [](std::span<std::byte> chunk) { std::memset(chunk.data(), 0, chunk.size()); });
}

Result<NewContent> open_source(const RandomFill& source) {
  return generated(
      source.bytes, [random = std::mt19937_64(source.seed)](std::span<std::byte> chunk) mutable {
        for (size_t at = 0; at < chunk.size(); at += sizeof(uint64_t)) {
          const uint64_t word = random();
          std::memcpy(chunk.data() + at, &word, std::min(sizeof word, chunk.size() - at));
        }
      });
}

}  // namespace

Result<NewContent> open_content(const CreateSource& source) {
  return std::visit([](const auto& kind) { return open_source(kind); }, source);
}

}  // namespace tierpilot
