#include "coordinator/service/backup_service.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "coordinator/store/backup.h"
#include "rpc/error.h"

namespace tierpilot {

void BackupMaker::finish() {
  if (thread_.joinable()) thread_.join();
}

void BackupMaker::make(Done done) {
  if (done_) return done(fail(ErrorCode::kConflict, "another backup is being made: try again"));
  finish();
  thread_ = std::thread([this] {
    auto made = std::make_shared<Result<UniqueFd>>(write());
    loop_.post([this, made] {
      const auto waiting = std::exchange(done_, nullptr);
      waiting(std::move(*made));
    });
  });
  done_ = std::move(done);
}

Result<UniqueFd> BackupMaker::write() {
  const auto file = state_dir_ / "backup.unfinished";
  // What was learned since the last save; a store without it is worth having too.
  (void)host_.save();
  if (auto written = write_backup(state_dir_, file); !written)
    return tl::unexpected(written.error());
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const int error = errno;
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (!fd) return fail_errno(error, "backup " + file.string());
  return fd;
}

kj::Promise<void> BackupReader::read(ReadContext context) {
  constexpr uint32_t kMostBytes = 1 << 20;
  const auto params = context.getParams();
  std::vector<kj::byte> bytes(
      std::min(params.getMaxBytes() ? params.getMaxBytes() : kMostBytes, kMostBytes));
  const auto got = ::pread(fd_.get(), bytes.data(), bytes.size(),
                           static_cast<off_t>(std::min<uint64_t>(params.getOffset(), INT64_MAX)));
  if (got < 0) kj::throwFatalException(to_exception(fail_errno(errno, "backup").value()));
  auto results = context.getResults();
  results.setData(kj::arrayPtr(bytes.data(), static_cast<size_t>(got)));
  results.setEnd(got == 0);
  return kj::READY_NOW;
}

}  // namespace tierpilot
