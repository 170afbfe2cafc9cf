// Task directories: <work_dir>/tasks/<task>-<attempt>/ with stdout.log and stderr.log. They outlive
// the daemon, so logs can be read after a restart; old ones are swept.
//
// A task that runs as another user works in work/ below it. The directory itself stays the
// daemon's: the task can pass it, and neither list nor change what is in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/agent/tasks/remover.h"
#include "daemon/agent/tasks/tree_sizes.h"
#include "model/attempt.h"

namespace tierpilot::agent {

struct LogChunk {
  uint64_t dropped = 0;  // bytes from the offset on that are there no more; `data` is behind them
  std::string data;
  bool end = false;  // nothing more now
};

class TaskDirs {
 public:
  struct Limits {
    int64_t keep_s = 24 * 3600;
    uint64_t keep_bytes = 1 << 30;  // of all ended attempts together
  };
  static constexpr uint32_t kMaxLogChunkBytes = 1 << 20;

  static Result<TaskDirs> open(const std::filesystem::path& work_dir, Limits limits);

  std::filesystem::path path_of(AttemptId attempt) const;
  // Makes an empty directory, mode 0700; leftovers of the same attempt are out of its way.
  Result<std::filesystem::path> create(AttemptId attempt) const;
  // The same for another user, with the logs, which stay open here until the attempt has ended, and
  // the working directory.
  Result<std::filesystem::path> create_for_other(AttemptId attempt);
  // Its age counts from now on.
  void mark_ended(AttemptId attempt);
  // `stream` is "stdout" or "stderr". Reads at most kMaxLogChunkBytes.
  Result<LogChunk> read_log(AttemptId attempt, std::string_view stream, uint64_t offset,
                            uint32_t max_bytes) const;
  // Drops the oldest of each of the attempt's logs, so that about `keep_bytes` of it take room.
  // Offsets stay what they were.
  void bound_logs(AttemptId attempt, uint64_t keep_bytes) const;
  // Removes what is over the limits, oldest first, never those in `held`. Returns how many: their
  // names are free at once, and threads of their own look at what is in them and remove it. Of what
  // they have not measured yet the room counts the next time.
  size_t sweep(const std::set<AttemptId>& held, int64_t now_ms) const;
  // The last sweep did not know the room of all.
  bool measuring() const { return sizes_->measuring(); }
  // Wall clock; 0 where there is none.
  int64_t newest_ms() const;

 private:
  TaskDirs(std::filesystem::path root, Limits limits) : root_(std::move(root)), limits_(limits) {}

  struct Logs {
    UniqueFd out, err;
  };

  Result<std::filesystem::path> make(AttemptId attempt, unsigned mode) const;
  // For reading or writing; the one that is open, if it is.
  UniqueFd open_log(AttemptId attempt, std::string_view stream, int flags) const;

  std::filesystem::path root_;
  Limits limits_;
  std::unique_ptr<Remover> remover_ = std::make_unique<Remover>();
  std::unique_ptr<TreeSizes> sizes_ = std::make_unique<TreeSizes>();
  std::map<AttemptId, Logs> logs_;  // of running attempts of other users
};

}  // namespace tierpilot::agent
