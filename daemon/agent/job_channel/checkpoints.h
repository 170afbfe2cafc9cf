// Takes the files that jobs name as checkpoints into the dataset pool, one of a job at a time. A
// path is hostile: it must be a regular file within the job's own folder, whatever links say.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "daemon/agent/job_channel/job_channels.h"
#include "daemon/agent/node/model.h"
#include "daemon/exec/users/task_file.h"
#include "daemon/memory/pool/pool.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class Checkpoints {
 public:
  static constexpr int64_t kLeastGapMs = 100;  // between the checkpoints of a job

  // What came of each is said through `channels`, and what it cost by `report`.
  Checkpoints(Pool& pool, JobChannels& channels, const Clock& clock,
              std::function<void(EventBody)> report)
      : pool_(pool),
        channels_(channels),
        clock_(clock),
        report_(std::move(report)),
        self_(std::make_shared<Checkpoints*>(this)) {}

  using Opened = std::function<void(Result<UniqueFd>)>;
  // How a file of an attempt's folder is opened; by this process, unless somebody else does it.
  std::function<void(AttemptId, const std::filesystem::path& folder, const std::string& path,
                     Opened opened)>
      open = [](AttemptId, const std::filesystem::path& folder, const std::string& path,
                const Opened& opened) { opened(open_task_file(folder, path)); };

  void begin(const Assignment& assignment, const std::filesystem::path& folder);
  void end(AttemptId attempt) { jobs_.erase(attempt); }
  void save(AttemptId attempt, const JobCheckpoint& asked);

 private:
  struct Job {
    std::filesystem::path folder;
    uint64_t task = 0;  // whose checkpoints they are: of a rank, its gang
    uint32_t rank = 0;
    bool has_any = false;
    uint64_t iteration = 0;  // of the last one
    bool busy = false;
    int64_t last_ns = 0;
  };

  // Why it is not taken.
  Status acceptable(const Job& job, const JobCheckpoint& asked) const;
  // Whether a job could begin from it.
  Status fits(const std::string& path, const UniqueFd& file) const;
  void take(AttemptId attempt, const JobCheckpoint& asked, Result<UniqueFd> opened);
  void saved(AttemptId attempt, const JobCheckpoint& asked, int64_t begin_ns,
             const Result<ReplicaChange>& made);

  Pool& pool_;
  JobChannels& channels_;
  const Clock& clock_;
  std::function<void(EventBody)> report_;
  std::map<AttemptId, Job> jobs_;
  // Callbacks that outlive it find it gone.
  std::shared_ptr<Checkpoints*> self_;
};

}  // namespace tierpilot::agent
