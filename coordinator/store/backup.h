// A coordinator's whole memory in one file, taken while it runs: the store as of one commit, and
// beside it the learners' weights and experiences.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace tierpilot {

// Copies the store of `state_dir`, and the files below its policy folder, to `file`, which is
// replaced. Commits go on meanwhile; the log grows by what they write until it is done. On an error
// there is no file.
Status write_backup(const std::filesystem::path& state_dir, const std::filesystem::path& file);

// Makes the state of a coordinator from a backup, in a directory that has none: kConflict if it
// has. Ids and attempts begin far above all that were given after the backup was taken: they are
// drawn from `now_ms`, the wall time, which must not stand before the time of an earlier restore.
Status restore_backup(const std::filesystem::path& file, const std::filesystem::path& state_dir,
                      int64_t now_ms);

// What a store is called in its directory until it is restored to its end; nobody begins another
// one beside it.
inline constexpr const char* kUnfinishedStore = "tierpilot.db.restoring";

// Settings that a restored store has.
namespace restored {
inline constexpr const char* kIdsAbove = "ids_above";            // of tasks and of submits
inline constexpr const char* kAttemptsAbove = "attempts_above";  // of tasks that are restored
inline constexpr const char* kAdopting = "adopting";  // 1: what nodes still run is to be adopted
}  // namespace restored

}  // namespace tierpilot
