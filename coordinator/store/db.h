// SQLite with errors as Results: one connection, prepared statements. Used by one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace tierpilot {

// One execution of a prepared statement; resets it when it goes.
class Query {
 public:
  Query(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  Query(Query&& other) noexcept : db_(other.db_), statement_(other.statement_), at_(other.at_) {
    other.statement_ = nullptr;
  }
  ~Query();

  Query& bind(int64_t value);
  Query& bind(std::string_view text);
  Query& bind(std::span<const std::byte> bytes);
  // Without a copy: `text` must outlive this object.
  Query& bind_borrowed(std::string_view text);
  // True: a row is there to read. False: done.
  Result<bool> step();
  Status run();
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;
  std::span<const std::byte> bytes(int column) const;  // until the next step
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_;
  int at_ = 0;
};

class Db {
 public:
  static Result<Db> open(const std::string& path);
  Db(Db&&) noexcept = default;
  Db& operator=(Db&&) noexcept = default;

  Status execute(const char* sql);
  // `sql` must be a literal: statements are cached by its address.
  Result<Query> query(const char* sql);
  // All of it as of one commit; others go on writing.
  Status copy_to(Db& target);
  // Of the write-ahead log, after this connection's last commit; 0 if checkpoint() came after it.
  int logged_pages() const { return *logged_pages_; }
  // As much of the log as nobody reads, without waiting for anybody.
  Status checkpoint();
  // All that the log has is in the database, synced, and the log begins anew. kExhausted, kIo: not
  // yet, with nothing lost.
  Status empty_log();

 private:
  Db() = default;
  struct Closer {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<int> logged_pages_ = std::make_unique<int>(0);  // SQLite has its address
  std::unique_ptr<sqlite3, Closer> db_;
  std::unordered_map<const char*, std::unique_ptr<sqlite3_stmt, Finalizer>> statements_;
};

}  // namespace tierpilot
