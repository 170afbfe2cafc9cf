// New datasets: imported, zeroed or random.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "daemon/memory/pool/replica_manager.h"
#include "daemon/memory/pool/transfer.h"

namespace tierpilot {
namespace {

// Gives a new dataset's bytes.
struct Content {
  uint64_t bytes = 0;
  std::function<Status(int to, const CancelFlag& cancel)> write;
};

Result<Content> open_content(const ImportFile& source) {
  const std::string what = fmt::format("source '{}'", source.path);
  // O_NONBLOCK: a FIFO would wait for a writer.
  auto fd =
      std::make_shared<UniqueFd>(::open(source.path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!*fd) return fail_errno(errno, what + " cannot be opened");
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return fail_errno(errno, what);
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kInvalid,
                what + (S_ISDIR(info.st_mode) ? " is a directory" : " is not a regular file"));
  const auto bytes = static_cast<uint64_t>(info.st_size);
  return Content{bytes, [=](int to, const CancelFlag& cancel) {
                   return copy_bytes(fd->get(), to, bytes, what, cancel);
                 }};
}

// Writes `bytes` bytes that `next` gives chunk by chunk.
template <class Next>
Content generated(uint64_t bytes, Next next) {
  return {bytes, [bytes, next](int to, const CancelFlag& cancel) mutable -> Status {
            CopyBuffer buffer;
            for (uint64_t offset = 0; offset < bytes;) {
              if (cancel) return cancelled("creating");
              const auto chunk = buffer.first(bytes - offset);
              next(chunk);
              if (auto status = write_at(to, chunk, offset, "writing"); !status) return status;
              offset += chunk.size();
            }
            return {};
          }};
}

// Zeros are written out: blocks that are merely allocated would be read without touching the disk.
Result<Content> open_content(const ZeroFill& source) {
  return generated(source.bytes,
                   [](std::span<std::byte> chunk) { std::memset(chunk.data(), 0, chunk.size()); });
}

Result<Content> open_content(const RandomFill& source) {
  return generated(
      source.bytes, [random = std::mt19937_64(source.seed)](std::span<std::byte> chunk) mutable {
        for (size_t at = 0; at < chunk.size(); at += sizeof(uint64_t)) {
          const uint64_t word = random();
          std::memcpy(chunk.data() + at, &word, std::min(sizeof word, chunk.size() - at));
        }
      });
}

}  // namespace

Result<ReplicaChange> ReplicaManager::create(const std::string& name, const CreateSource& source,
                                             const CancelFlag& cancel) {
  const auto in_context = [&](const Error& error) {
    return fail(error.code, fmt::format("dataset '{}': {}", name, error.message));
  };
  const auto content = std::visit([](const auto& kind) { return open_content(kind); }, source);
  if (!content) return in_context(content.error());

  Lock lock(mutex_);
  const DatasetId id{name, 1};
  if (ledger_.holds(name))
    return fail(ErrorCode::kConflict, fmt::format("dataset '{}' exists already", name));
  Replica& replica = ledger_.entry(id, content->bytes);
  Busy busy(*this, id);
  if (auto status = make_slow_room(lock, content->bytes); !status)
    return in_context(status.error());
  const auto status = without_lock(lock, [&]() -> Status {
    auto draft = slow_.draft(content->bytes);
    if (!draft) return tl::unexpected(draft.error());
    if (auto written = content->write(draft->fd(), cancel); !written) return written;
    return slow_.publish(std::move(*draft), {id, content->bytes}, true);
  });
  if (!status) {
    ledger_.slow.give(content->bytes);
    return in_context(status.error());
  }
  ledger_.order.set_slow(replica, true);
  ledger_.order.set_home(replica, true);
  ledger_.order.touch(replica);
  changed(id, replica);
  return change_of(id, replica);
}

}  // namespace tierpilot
