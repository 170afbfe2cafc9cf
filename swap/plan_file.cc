#include "swap/plan_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "base/unique_fd.h"
#include "policies/swap/learning/merged_plans.h"

namespace tierpilot::swap {
namespace {

constexpr off_t kMostBytes = 64 << 20;

// Speeds of tiers are measured anew in each run, and what differs a little is learned on the way.
// Which directory it is does not matter: each task, and each of its tries, is given one of its own.
std::string settings_of(const Session& session) {
  auto text = fmt::format("{} {} {}", TIERPILOT_VERSION, session.settings().rule,
                          session.settings().budget_bytes);
  for (const auto& tier : session.pool().tiers())
    text += tier.tier->kind() == "directory" ? " directory" : " " + tier.tier->name();
  return text;
}

Result<std::string> bytes_of(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0) return fail_errno(errno, "stat");
  if (status.st_size > kMostBytes) return fail(ErrorCode::kInvalid, "it has more than 64 MiB");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const auto got = read(file, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, "read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Status write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto wrote = write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(errno, "write");
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

constexpr int kTries = 16;

std::string path_of(const UniqueFd& file) {
  return fmt::format("/proc/self/fd/{}", file.get());
}

Result<struct stat> plain_file(const UniqueFd& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return fail_errno(errno, "stat");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::kInvalid, "it is no plain file; name another one");
  return status;
}

// What is there, not opened yet: to open a device may do something. Links are followed where the
// kernel lets this user follow them. Empty: nothing is there.
Result<UniqueFd> found_at(const std::filesystem::path& path) {
  UniqueFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!file && errno != ENOENT) return fail_errno(errno, "open");
  return file;
}

// A name in a folder, and what has it.
struct Place {
  UniqueFd folder;
  std::string name;
  UniqueFd file;
};

// Where to put a plain file in the place of what is there. Empty: it was changed meanwhile.
Result<std::optional<Place>> place_of(const std::filesystem::path& path) {
  auto file = found_at(path);
  if (!file) return tl::unexpected(file.error());
  std::error_code error;
  auto real = path;
  if (!*file && std::filesystem::is_symlink(path, error)) {  // to what is to be
    file->reset(open(path.c_str(), O_RDONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
    if (!*file) return fail_errno(errno, "what the link names");
  }
  struct stat expected {
  }, there{};
  if (*file) {
    const auto plain = plain_file(*file);
    if (!plain) return tl::unexpected(plain.error());
    expected = *plain;
    real = std::filesystem::read_symlink(path_of(*file), error);
    if (error) return fail(ErrorCode::kUnavailable, error.message());
  }
  const auto folder = real.has_parent_path() ? real.parent_path() : ".";
  Place place{
      UniqueFd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), real.filename(), {}};
  if (!place.folder && errno == ENOENT && *file) return std::nullopt;
  if (!place.folder) return fail_errno(errno, fmt::format("folder '{}'", folder.string()));
  // Folders on the way may be others' than they were when the link was followed.
  const bool any =
      fstatat(place.folder.get(), place.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  const bool as_found =
      *file ? any && there.st_dev == expected.st_dev && there.st_ino == expected.st_ino : !any;
  if (!as_found) return std::nullopt;
  place.file = std::move(*file);
  return place;
}

Status replace(const Place& place, std::string_view bytes) {
  constexpr size_t kMostOfName = 200;  // with what follows it is a name, too
  auto beside =
      fmt::format("{}/{}.XXXXXX", path_of(place.folder), place.name.substr(0, kMostOfName));
  const UniqueFd file(mkostemp(beside.data(), O_CLOEXEC));
  if (!file) return fail_errno(errno, "a new file beside it");
  auto status = write_all(file.get(), bytes);
  if (status && renameat(AT_FDCWD, beside.c_str(), place.folder.get(), place.name.c_str()) != 0)
    status = fail_errno(errno, "rename");
  if (!status) unlink(beside.c_str());
  return status;
}

Result<std::string> bytes_of(const UniqueFd& found) {
  if (const auto plain = plain_file(found); !plain) return tl::unexpected(plain.error());
  const UniqueFd file(open(path_of(found).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(errno, "open");
  return bytes_of(file.get());
}

// Programs that keep theirs in the same folder go one after the other. Where that cannot be, or one
// stands still, what another keeps at the same time may be lost.
UniqueFd locked(const UniqueFd& folder) {
  constexpr auto kWait = std::chrono::milliseconds(5);
  constexpr int kMostWaits = 1'000;
  UniqueFd lock(open(path_of(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int waits = 0; lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++waits) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || waits == kMostWaits) return {};
    std::this_thread::sleep_for(kWait);
  }
  return lock;
}

// `bytes`: to be put in the place of what is found, which may be nothing.
Status replace(const std::filesystem::path& path,
               const std::function<Result<std::string>(const UniqueFd&)>& bytes) {
  std::optional<UniqueFd> lock;
  // Programs that hold no lock may change it.
  for (int tries = 0; tries < kTries; ++tries) {
    const auto place = place_of(path);
    if (!place) return tl::unexpected(place.error());
    if (!*place) continue;
    if (lock)
      return bytes((*place)->file).and_then([&](const std::string& text) {
        return replace(**place, text);
      });
    lock = locked((*place)->folder);
  }
  return fail(ErrorCode::kUnavailable, "it was changed again and again meanwhile");
}

}  // namespace

Status restore_plans(Session& session, const std::filesystem::path& path) {
  const auto found = found_at(path);
  if (found && !*found) return {};
  const auto bytes = found ? bytes_of(*found) : tl::unexpected(found.error());
  auto plans = bytes ? read_plans(*bytes, settings_of(session)) : tl::unexpected(bytes.error());
  if (!plans)
    return fail(plans.error().code, fmt::format("'{}': {}", path.string(), plans.error().message));
  session.restore(std::move(*plans));
  return {};
}

Status keep_plans(Session& session, const std::filesystem::path& path) {
  const auto plans = session.kept();
  if (plans.steps.empty()) return {};  // nothing learned
  const auto settings = settings_of(session);
  const auto status = replace(path, [&](const UniqueFd& found) -> Result<std::string> {
    const auto there = found ? bytes_of(found) : std::string();
    if (!there) return tl::unexpected(there.error());
    if (!may_be_plans(*there))
      return fail(ErrorCode::kConflict, "it is no plan file; name another one, or remove it");
    auto theirs = read_plans(*there, settings);
    return write_plans(merged(plans, theirs ? std::move(*theirs) : KeptPlans{}), settings);
  });
  if (status) return {};
  return fail(status.error().code,
              fmt::format("'{}' cannot be written: {}", path.string(), status.error().message));
}

}  // namespace tierpilot::swap
