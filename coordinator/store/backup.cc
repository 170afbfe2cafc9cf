#include "coordinator/store/backup.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/files/durable_rename.h"
#include "base/unique_fd.h"
#include "coordinator/store/migrations/migration.h"
#include "coordinator/store/records.h"
#include "policies/learning/saved_bytes.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPolicyFolder = "policy";
constexpr const char* kStoreFile = "tierpilot.db";

// More than any coordinator gives in a second, so that a later restore begins above all that were
// given since an earlier one, also when both are of the same backup. 47 bits last until 2091.
constexpr int64_t kIdsPerSecond = 65'536;
constexpr int64_t kEpochSeconds = 1'672'531'200;  // 2023-01-01

Status put_file(Db& db, const std::string& name, const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();  // unlike an iterator it does not throw
  const std::string bytes = text.str();
  if (!in || text.bad())
    return fail(ErrorCode::kIo, fmt::format("'{}' cannot be read", file.string()));
  auto put = db.query("INSERT INTO backup_files VALUES(?, ?)");
  if (!put) return tl::unexpected(put.error());
  return put->bind(name).bind(std::as_bytes(std::span(bytes))).run();
}

// What is being written anew has ".new" behind its name until it is whole.
Status put_policy_files(Db& db, const fs::path& state_dir) {
  std::error_code error;
  const auto folder = state_dir / kPolicyFolder;
  fs::recursive_directory_iterator entry(folder, error), end;
  if (error == std::errc::no_such_file_or_directory) return {};  // nothing was learned yet
  for (; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || entry->path().extension() == ".new") continue;
    const auto name = entry->path().lexically_relative(state_dir).string();
    if (auto put = put_file(db, name, entry->path()); !put) return put;
  }
  if (error) return fail(ErrorCode::kIo, fmt::format("'{}': {}", folder.string(), error.message()));
  return {};
}

Status copy_store(const fs::path& from, const fs::path& to) {
  auto source = Db::open(from.string());
  if (!source) return tl::unexpected(source.error());
  auto target = Db::open(to.string());
  if (!target) return tl::unexpected(target.error());
  if (auto copied = source->copy_to(*target); !copied) return copied;
  return target->execute("PRAGMA journal_mode=DELETE");
}

Status fill_backup(const fs::path& state_dir, const fs::path& file) {
  if (auto copied = copy_store(state_dir / kStoreFile, file); !copied) return copied;
  auto db = Db::open(file.string());
  if (!db) return tl::unexpected(db.error());
  if (auto begun =
          db->execute("BEGIN; CREATE TABLE backup_files(name TEXT PRIMARY KEY, bytes BLOB)");
      !begun)
    return begun;
  if (auto put = put_policy_files(*db, state_dir); !put) return put;
  return db->execute("COMMIT");
}

// A name is from a file that anybody may have changed.
bool is_inside(const fs::path& name) {
  if (name.is_absolute() || name.begin() == name.end() || *name.begin() != kPolicyFolder)
    return false;
  return std::find(name.begin(), name.end(), "..") == name.end();
}

Status take_out_files(Db& db, const fs::path& state_dir) {
  auto files = db.query("SELECT name, bytes FROM backup_files");
  if (!files) return tl::unexpected(files.error());
  for (;;) {
    auto row = files->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
    const fs::path name = files->text(0);
    if (!is_inside(name))
      return fail(ErrorCode::kInvalid, fmt::format("a file named '{}' in it", name.string()));
    std::error_code error;
    fs::create_directories((state_dir / name).parent_path(), error);
    const auto bytes = files->bytes(1);
    if (auto saved = save_bytes(state_dir / name,
                                {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        !saved)
      return saved;
  }
}

Status check_backup(Db& db) {
  auto check = db.query("PRAGMA quick_check");
  if (!check) return tl::unexpected(check.error());
  if (auto row = check->step(); !row || check->text(0) != "ok")
    return fail(ErrorCode::kInvalid, "it is damaged");
  auto is_backup = db.query("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'backup_files'");
  if (!is_backup) return tl::unexpected(is_backup.error());
  if (auto row = is_backup->step(); !row || is_backup->integer(0) == 0)
    return fail(ErrorCode::kInvalid, "it is no backup: 'tierctl backup' writes them");
  const auto format = records::setting(db, "format", 0);
  if (!format) return tl::unexpected(format.error());
  if (*format > records::migrations().back().to)
    return fail(ErrorCode::kInvalid,
                fmt::format("it is of format {}, of a newer version: install that", *format));
  return {};
}

Status begin_epoch(Db& db, int64_t now_ms) {
  const int64_t seconds = std::max<int64_t>(now_ms / 1000 - kEpochSeconds, 1);
  const auto last = records::last_task_id(db);
  if (!last) return tl::unexpected(last.error());
  const auto before = records::setting(db, restored::kIdsAbove, 0);
  const auto attempts = records::setting(db, restored::kAttemptsAbove, 0);
  if (!before || !attempts) return fail(ErrorCode::kIo, "its settings cannot be read");
  const int64_t ids =
      std::max({seconds * kIdsPerSecond, *before + 1, static_cast<int64_t>(*last) + 1});
  for (const auto& [key, value] :
       {std::pair(restored::kIdsAbove, ids),
        std::pair(restored::kAttemptsAbove, std::max(seconds, *attempts + 1'000)),
        std::pair(restored::kAdopting, int64_t{1})})
    if (auto put = records::put_setting(db, key, value); !put) return put;
  return {};
}

Status fill_state(const fs::path& backup, const fs::path& state_dir, const fs::path& store,
                  int64_t now_ms) {
  if (auto copied = copy_store(backup, store); !copied) return copied;
  auto db = Db::open(store.string());
  if (!db) return tl::unexpected(db.error());
  if (auto good = check_backup(*db); !good) return good;
  if (auto out = take_out_files(*db, state_dir); !out) return out;
  if (auto dropped = db->execute("DROP TABLE backup_files"); !dropped) return dropped;
  return begin_epoch(*db, now_ms);
}

// As root for the account whose folder it is, which is to start there.
Status give_to_owner(const fs::path& state_dir) {
  if (::geteuid() != 0) return {};
  struct stat owner {};
  if (::stat(state_dir.c_str(), &owner) != 0) return fail_errno(errno, state_dir.native());
  std::error_code error;
  for (fs::recursive_directory_iterator at(state_dir, error), end; !error && at != end;
       at.increment(error))
    if (::lchown(at->path().c_str(), owner.st_uid, owner.st_gid) != 0)
      return fail_errno(errno, at->path().native());
  if (error) return fail_errno(error.value(), state_dir.native());
  return {};
}

// Its log and index stay when it is closed: see Db::open().
void remove_log(const fs::path& store) {
  std::error_code ignored;
  for (const char* end : {"-wal", "-shm"}) fs::remove(store.native() + end, ignored);
}

Status restore_into(const fs::path& file, const fs::path& state_dir, int64_t now_ms) {
  std::error_code error;
  const fs::path unfinished = state_dir / kUnfinishedStore;
  fs::remove(unfinished, error);
  auto filled = fill_state(file, state_dir, unfinished, now_ms);
  remove_log(unfinished);
  if (filled) filled = give_to_owner(state_dir);
  if (!filled) {
    fs::remove(unfinished, error);
    fs::remove_all(state_dir / kPolicyFolder, error);
    return fail(filled.error().code,
                fmt::format("backup '{}': {}", file.string(), filled.error().message));
  }
  return rename_durably(unfinished, state_dir / kStoreFile);
}

}  // namespace

Status write_backup(const fs::path& state_dir, const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  auto filled = fill_backup(state_dir, file);
  remove_log(file);
  if (!filled) fs::remove(file, error);
  return filled;
}

Status restore_backup(const fs::path& file, const fs::path& state_dir, int64_t now_ms) {
  std::error_code error;
  if (!fs::exists(file, error))
    return fail(ErrorCode::kNotFound,
                fmt::format("backup '{}': there is no such file", file.string()));
  if (!fs::is_regular_file(file, error))
    return fail(ErrorCode::kInvalid,
                fmt::format("backup '{}': it is no plain file", file.string()));
  // A log of another store would be taken for the restored one's.
  const auto log = std::string(kStoreFile) + "-wal";
  for (const auto& taken : {state_dir / kStoreFile, state_dir / log, state_dir / kPolicyFolder})
    if (fs::exists(taken, error))
      return fail(ErrorCode::kConflict,
                  fmt::format("'{}' is there: a backup is restored to an empty state directory; "
                              "move what is in this one elsewhere",
                              taken.string()));
  // It has everybody's environments, and keeps out whom the backup does.
  const mode_t before = ::umask(077);
  fs::create_directories(state_dir, error);
  auto restored = restore_into(file, state_dir, now_ms);
  ::umask(before);
  return restored;
}

}  // namespace tierpilot
