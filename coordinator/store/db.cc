#include "coordinator/store/db.h"

#include <fmt/format.h>

namespace tierpilot {
namespace {

tl::unexpected<Error> fail_sqlite(sqlite3* db) {
  const int code = sqlite3_errcode(db);
  const bool full = code == SQLITE_FULL;
  const char* path = sqlite3_db_filename(db, "main");
  return fail(full ? ErrorCode::kExhausted : ErrorCode::kIo,
              fmt::format("store {}: {}{}", path ? path : "?", sqlite3_errmsg(db),
                          full ? ": make room on its file system" : ""));
}

}  // namespace

Query::~Query() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::bind(int64_t value) {
  sqlite3_bind_int64(statement_, ++at_, value);
  return *this;
}

Query& Query::bind(std::string_view text) {
  sqlite3_bind_text(statement_, ++at_, text.data() ? text.data() : "",
                    static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}

Query& Query::bind(std::span<const std::byte> bytes) {
  sqlite3_bind_blob64(statement_, ++at_, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Query& Query::bind_borrowed(std::string_view text) {
  sqlite3_bind_text(statement_, ++at_, text.data() ? text.data() : "",
                    static_cast<int>(text.size()), SQLITE_STATIC);
  return *this;
}

Result<bool> Query::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail_sqlite(db_);
}

Status Query::run() {
  auto row = step();
  if (!row) return tl::unexpected(row.error());
  return {};
}

std::string Query::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
               : std::string();
}

std::span<const std::byte> Query::bytes(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

Result<Db> Db::open(const std::string& path) {
  // Before its first use: nobody asks how much memory it has, and counting takes a lock each time.
  static const int uncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)uncounted;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Db db;
  db.db_.reset(raw);
  if (code != SQLITE_OK)
    return fail(ErrorCode::kIo, fmt::format("store {}: {}", path,
                                            raw ? sqlite3_errmsg(raw) : sqlite3_errstr(code)));
  sqlite3_busy_timeout(raw, 5000);
  // Its log and index stay, cut to nothing, when the last one closes: on a disk that is full by
  // then they could not be made anew, and nobody could even read.
  int keep = 1;
  sqlite3_file_control(raw, nullptr, SQLITE_FCNTL_PERSIST_WAL, &keep);
  const auto count = [](void* pages, sqlite3*, const char*, int logged) {
    *static_cast<int*>(pages) = logged;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(raw, count, db.logged_pages_.get());  // in place of automatic checkpoints
  return db;
}

Status Db::execute(const char* sql) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail_sqlite(db_.get());
  return {};
}

Status Db::copy_to(Db& target) {
  auto* copy = sqlite3_backup_init(target.db_.get(), "main", db_.get(), "main");
  if (!copy) return fail_sqlite(target.db_.get());
  // In one go: what others write between two steps would begin it anew.
  const int code = sqlite3_backup_step(copy, -1);
  sqlite3_backup_finish(copy);
  if (code == SQLITE_DONE) return {};
  return fail(code == SQLITE_FULL ? ErrorCode::kExhausted : ErrorCode::kIo,
              fmt::format("store: copying it: {}", sqlite3_errstr(code)));
}

Status Db::checkpoint() {
  *logged_pages_ = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  // Another checkpoint is under way: it does the work.
  if (code != SQLITE_OK && code != SQLITE_BUSY) return fail_sqlite(db_.get());
  return {};
}

Status Db::empty_log() {
  *logged_pages_ = 0;
  if (sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) !=
      SQLITE_OK)
    return fail_sqlite(db_.get());
  return {};
}

Result<Query> Db::query(const char* sql) {
  auto& statement = statements_[sql];
  if (!statement) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr) !=
        SQLITE_OK)
      return fail_sqlite(db_.get());
    statement.reset(raw);
  }
  return Query(db_.get(), statement.get());
}

}  // namespace tierpilot
