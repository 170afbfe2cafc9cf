#include "daemon/exec/users/belongings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/files/listing.h"
#include "base/unique_fd.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

// Directories that are open at a time; what is deeper is moved up.
constexpr size_t kMostDepth = 64;

struct Owner {
  uid_t uid;
  gid_t gid;
};

// A handle on what the name stands for now, a link itself included.
UniqueFd handle(int folder, const char* name) {
  return UniqueFd(::openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

Status change_owner(const UniqueFd& file, Owner to, const std::string& what) {
  if (::fchownat(file.get(), "", to.uid, to.gid, AT_EMPTY_PATH) == 0) return {};
  return fail_errno(errno, fmt::format("{}: cannot become user {}'s", what, to.uid));
}

// Through /proc: fchmod refuses such a handle.
void change_mode(const UniqueFd& file, mode_t mode) {
  (void)::chmod(fmt::format("/proc/self/fd/{}", file.get()).c_str(), mode);
}

// A regular file with no other name: else it is a link to somebody's file, or the task's own doing.
Status give_file(const std::string& path, Owner to) {
  const auto file = handle(AT_FDCWD, path.c_str());
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return fail_errno(errno, path);
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || info.st_uid != ::geteuid())
    return fail(ErrorCode::kConflict,
                fmt::format("'{}' is not a regular file of the daemon's with one name", path));
  return change_owner(file, to, path);
}

// One that the daemon has made: in a directory where others write, it may be somebody's by now.
Status give_folder(const std::string& path, Owner to) {
  const auto folder = handle(AT_FDCWD, path.c_str());
  struct stat info {};
  if (!folder || ::fstat(folder.get(), &info) != 0) return fail_errno(errno, path);
  if (!S_ISDIR(info.st_mode)) return fail_errno(ENOTDIR, path);
  if (info.st_uid != ::geteuid())
    return fail(
        ErrorCode::kConflict,
        fmt::format("folder '{}' belongs to user {}, not to the daemon", path, info.st_uid));
  return change_owner(folder, to, path);
}

void take_file(const std::string& path, uid_t from) {
  const auto file = handle(AT_FDCWD, path.c_str());
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  // One with a second name stays the task's, so that all its names go with its user's files.
  if (info.st_uid != from || info.st_nlink != 1 ||
      !change_owner(file, {::geteuid(), ::getegid()}, path))
    return;
  change_mode(file, 0600);
}

// Depth first, with few descriptors: what is too deep is moved up to the top, and looked at last.
class TreeWalk {
 public:
  TreeWalk(uid_t from, Owner to, const TakeOver& what) : from_(from), to_(to), what_(what) {}

  Status run(const fs::path& directory) {
    top_ = directory.native();
    enter(AT_FDCWD, top_.c_str());
    while (!open_.empty()) step();
    return first_fault_;
  }

 private:
  int top() const { return ::dirfd(open_.front().get()); }

  void step() {
    const dirent* entry = ::readdir(open_.back().get());
    if (entry) return visit(entry->d_name);
    if (open_.size() > 1 || risen_.empty()) return open_.pop_back();
    const auto name = std::move(risen_.back());
    risen_.pop_back();
    enter(top(), name.c_str());
  }

  void visit(const std::string& name) {
    if (is_dots(name.c_str())) return;
    const int folder = ::dirfd(open_.back().get());
    const auto file = handle(folder, name.c_str());
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) return;
    if (!S_ISDIR(info.st_mode)) {
      if (info.st_uid == from_ && (what_.linked_files || info.st_nlink == 1))
        note(change_owner(file, to_, top_));
    } else if (open_.size() < kMostDepth) {
      enter(folder, name.c_str());
    } else {
      rise(folder, name);
    }
  }

  // Its handle, once it is `to`'s; nothing: it is somebody else's.
  UniqueFd take(int folder, const char* name) {
    auto file = handle(folder, name);
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISDIR(info.st_mode)) return UniqueFd();
    const bool others_too =
        what_.all_folders && !open_.empty();  // not the top: its name may be anybody's
    if (!others_too && info.st_uid != from_ && info.st_uid != to_.uid) return UniqueFd();
    if (auto status = change_owner(file, to_, top_); !status) {
      note(std::move(status));
      return UniqueFd();
    }
    // Nobody else adds to it while it is walked through.
    change_mode(file, S_IRWXU);
    return file;
  }

  void enter(int folder, const char* name) {
    const auto file = take(folder, name);
    if (!file) return;
    auto listing = list_folder(file.get(), ".");
    if (!listing) return note(fail_errno(errno, top_ + ": a directory cannot be listed"));
    open_.push_back(std::move(listing));
  }

  void rise(int folder, const std::string& name) {
    if (!take(folder, name.c_str())) return;
    auto risen = fmt::format(".deep-{}", serial_++);
    if (::renameat2(folder, name.c_str(), top(), risen.c_str(), RENAME_NOREPLACE) == 0)
      risen_.push_back(std::move(risen));
    else if (errno == EEXIST)
      rise(folder, name);
    else
      note(fail_errno(errno, top_ + ": a directory cannot be moved up"));
  }

  void note(Status status) {
    if (first_fault_ && !status) first_fault_ = std::move(status);
  }

  const uid_t from_;
  const Owner to_;
  const TakeOver what_;
  std::string top_;
  std::vector<Listing> open_;
  std::vector<std::string> risen_;
  uint64_t serial_ = 0;
  Status first_fault_;
};

fs::path marker(const fs::path& attempt_directory) {
  return attempt_directory / ".user";
}

Status write_marker(const fs::path& path, const TaskUser& user) {
  const auto text = fmt::format("{} {} {}\n", user.uid, user.gid, user.reserved ? 1 : 0);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return fail_errno(errno, path.native());
  return {};
}

}  // namespace

Status hand_over(const TaskLaunch& task) {
  const Owner user{task.user->uid, task.user->gid};
  auto status = write_marker(marker(task.log_directory), *task.user);
  for (const char* log : kLogNames)
    if (status) status = give_file(task.log_directory + "/" + log, user);
  for (const auto& path : task.given)
    if (status) status = give_file(path, user);
  for (const auto& folder : task.given_folders)
    if (status) status = give_folder(folder, user);
  if (!status) return status;
  return give_folder(task.working_directory, user);
}

void take_back_logs(const TaskLaunch& task) {
  for (const char* log : kLogNames) take_file(task.log_directory + "/" + log, task.user->uid);
}

void take_back_files(const TaskLaunch& task) {
  take_back_logs(task);
  for (const auto& path : task.given) take_file(path, task.user->uid);
}

Status take_over_tree(const fs::path& directory, uid_t from, const TakeOver& what) {
  return TreeWalk(from, {::geteuid(), ::getegid()}, what).run(directory);
}

std::optional<TaskUser> user_left(const fs::path& attempt_directory) {
  UniqueFd fd(
      ::open(marker(attempt_directory).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid())
    return std::nullopt;
  char text[64] = "";
  if (::read(fd.get(), text, sizeof text - 1) <= 0) return std::nullopt;
  std::istringstream words(text);
  TaskUser user;
  if (!(words >> user.uid >> user.gid >> user.reserved) || user.gid == 0) return std::nullopt;
  return user;
}

void nothing_left(const fs::path& attempt_directory) {
  (void)::unlink(marker(attempt_directory).c_str());
}

}  // namespace tierpilot
