// What belongs to a task while it runs as another user than the daemon: its working directory, its
// logs and the files that it was given. Everything is found by name in folders that are the
// daemon's, and never through a link.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "daemon/exec/task.h"

namespace tierpilot {

inline constexpr const char* kWorkFolder = "work";  // in the attempt's directory
inline constexpr const char* kLogNames[] = {"stdout.log", "stderr.log"};

// Makes all of it the user's. Needs CAP_CHOWN.
Status hand_over(const TaskLaunch& task);

// The logs and the given files are the daemon's again, readable and writable for it. Of what the
// task may have put in their place nothing is touched that is not the task's. Quick. Once, before
// the end is told: a given file that had a second name then stays the task's, for good.
void take_back_files(const TaskLaunch& task);
// Also those that had a second name, once nothing is left of their user.
void take_back_logs(const TaskLaunch& task);

struct TakeOver {
  bool all_folders = false;  // also others'; needs CAP_CHOWN
  bool linked_files = true;  // with a second name, which may be anywhere
};

// Makes a directory and all below it the daemon's that was `from`'s, whatever modes, links and
// depth it has, so that it can read and remove it. Where the directory itself is neither's,
// nothing. Files of others stay as they are. The first error is told, and what can be done is done
// all the same.
Status take_over_tree(const std::filesystem::path& directory, uid_t from, const TakeOver& what);

// Whose something of an attempt may still be, of its directory or elsewhere: hand_over() notes it
// there before it gives anything. Nothing: nobody's.
std::optional<TaskUser> user_left(const std::filesystem::path& attempt_directory);
void nothing_left(const std::filesystem::path& attempt_directory);

}  // namespace tierpilot
