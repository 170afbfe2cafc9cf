// The thread that trains, at low priority, and everything that only it may touch.
#pragma once

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/result.h"
#include "coordinator/policy_host/inbox.h"
#include "policies/dqn/trainer.h"

namespace tierpilot {

class TrainingThread {
 public:
  // What save() must know of the world outside.
  struct SaveRequest {
    std::filesystem::path file;
    std::vector<PendingExperience> pending;
    uint64_t decisions = 0;
    std::shared_ptr<std::promise<Status>> done;  // null: a failure is only logged
  };
  struct Counters {
    uint64_t experiences = 0;
    uint64_t duplicates = 0;
    uint64_t replay_size = 0;
    uint64_t training_steps = 0;
    uint64_t batches = 0;
    uint64_t weights_version = 0;
    double loss = 0;
    bool failed = false;  // training stopped after an error, which is in the log
  };

  // `nice` is 0 to 19, see DqnSettings::training_nice.
  TrainingThread(std::unique_ptr<Trainer> trainer, uint64_t experiences,
                 std::shared_ptr<WeightsMailbox> mailbox, int nice);
  ~TrainingThread();

  // All of these may be called from any thread and return at once.
  void add(std::vector<Experience> experiences);
  void copy_weights();
  void save(SaveRequest request);
  Counters counters() const;

 private:
  struct CopyWeights {};
  struct Stop {};
  using Message = std::variant<Experience, CopyWeights, SaveRequest, Stop>;

  void run(int nice);
  void handle(Message message);
  void train();
  void copy_if_due();
  Status write(const SaveRequest& request) const;
  void publish_counters();

  std::unique_ptr<Trainer> trainer_;
  std::shared_ptr<WeightsMailbox> mailbox_;
  Inbox<Message> inbox_;
  bool stopping_ = false;
  bool copy_due_ = false;
  Counters own_;

  std::atomic<uint64_t> experiences_ = 0;
  std::atomic<uint64_t> duplicates_ = 0;
  std::atomic<uint64_t> replay_size_ = 0;
  std::atomic<uint64_t> training_steps_ = 0;
  std::atomic<uint64_t> batches_ = 0;
  std::atomic<uint64_t> weights_version_ = 0;
  std::atomic<double> loss_ = 0;
  std::atomic<bool> failed_ = false;

  std::thread thread_;
};

}  // namespace tierpilot
