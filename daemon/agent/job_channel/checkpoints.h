// Takes the files that jobs name as checkpoints into the dataset pool, one of a job at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "daemon/agent/job_channel/job_channels.h"
#include "daemon/agent/node/model.h"
#include "daemon/memory/pool/pool.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class Checkpoints {
 public:
  static constexpr int64_t kLeastGapMs = 100;  // between the checkpoints of a job

  using Opened = std::function<void(Result<UniqueFd>)>;
  // Opens a regular file of the attempt's folder. A path is hostile: it may lead anywhere, also to
  // where opening takes for ever, so that whoever does it is not waited for.
  using Open = std::function<void(AttemptId, const std::string& path, Opened opened)>;

  // What came of each is said through `channels`, and what it cost by `report`.
  Checkpoints(Pool& pool, JobChannels& channels, const Clock& clock, Open open,
              std::function<void(EventBody)> report)
      : pool_(pool),
        channels_(channels),
        clock_(clock),
        open_(std::move(open)),
        report_(std::move(report)),
        self_(std::make_shared<Checkpoints*>(this)) {}

  void begin(const Assignment& assignment);
  void end(AttemptId attempt) { jobs_.erase(attempt); }
  void save(AttemptId attempt, const JobCheckpoint& asked);

 private:
  struct Job {
    uint64_t task = 0;  // whose checkpoints they are: of a rank, its gang
    uint32_t rank = 0;
    bool has_any = false;
    uint64_t iteration = 0;  // of the last one
    bool busy = false;
    std::optional<int64_t> last_ns{};  // when the last one was saved, or could not be
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
  Open open_;
  std::function<void(EventBody)> report_;
  std::map<AttemptId, Job> jobs_;
  // Callbacks that outlive it find it gone.
  std::shared_ptr<Checkpoints*> self_;
};

}  // namespace tierpilot::agent
