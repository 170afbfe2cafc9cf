// What the readers and writers of rows share.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/store/db.h"

namespace tierpilot::records {

inline Query& bind_unsigned(Query& query, uint64_t value) {
  return query.bind(static_cast<int64_t>(value));
}

inline uint64_t as_unsigned(const Query& query, int column) {
  return static_cast<uint64_t>(query.integer(column));
}

// Reads all rows of `query` with `read`.
template <class T, class Read>
Result<std::vector<T>> read_all(Query& query, Read read) {
  std::vector<T> rows;
  for (;;) {
    auto more = query.step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return rows;
    Result<T> row = read(query);
    if (!row) return tl::unexpected(row.error());
    rows.push_back(std::move(*row));
  }
}

}  // namespace tierpilot::records
