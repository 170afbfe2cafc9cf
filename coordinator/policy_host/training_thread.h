// The thread that trains, at low priority, and owns the learners.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/result.h"
#include "coordinator/policy_host/inbox.h"
#include "coordinator/policy_host/version_archive.h"
#include "policies/learning/learner.h"
#include "policies/learning/training_pace.h"

namespace tierpilot {

class TrainingThread {
 public:
  // A learner that sleeps is told nothing and costs nothing, until it is woken.
  struct NamedLearner {
    std::string policy;
    std::unique_ptr<Learner> learner;
    bool awake = true;
    std::string origin = {};  // what its learning began from
  };
  struct LearnerStatus {
    LearnerCounters counters;
    bool failed = false;                   // training stopped after an error, which is in the log
    std::vector<WeightsVersion> versions;  // oldest first
    std::string origin;
  };
  using VersionDone = std::function<void(Result<WeightsVersion>)>;

  // With an empty `state_dir`, save() fails.
  TrainingThread(std::vector<NamedLearner> learners, std::filesystem::path state_dir,
                 TrainingPace pace, VersionArchive archive);
  ~TrainingThread();

  // All of these may be called from any thread and return at once; facts arrive in order. When
  // there are too many, or too much waits as training has little of a core, decisions are left out:
  // facts about them are ignored then.
  void decided(uint64_t id, std::shared_ptr<const View> view, size_t node);
  void told(uint64_t id, const Outcome& outcome);
  // Wakes the learner behind `policy`, and has it hand over its newest weights.
  void wake(const std::string& policy);
  // With a null `done` a failure is only logged, and nothing is done when nothing is new.
  void save(std::shared_ptr<std::promise<Status>> done);
  // Keeps the weights there are, with what `about` says of their reason and reward; nothing is
  // done when they are those of the newest version. `done` may be null, and runs on this thread.
  void keep_version(const std::string& policy, WeightsVersion about, VersionDone done);
  // Goes back to a version (0: the newest but one that differs from what is used now), after the
  // weights there are were kept. Learning goes on from there, with new experiences only.
  void roll_back(const std::string& policy, uint64_t number, WeightsVersion about,
                 VersionDone done);
  LearnerStatus status(const std::string& policy) const;

 private:
  struct Decided {
    uint64_t id;
    std::shared_ptr<const View> view;
    size_t node;
  };
  struct Told {
    uint64_t id;
    Outcome outcome;
  };
  struct Wake {
    std::string policy;
  };
  struct Save {
    std::shared_ptr<std::promise<Status>> done;
  };
  struct Keep {
    std::string policy;
    WeightsVersion about;
    VersionDone done;
  };
  struct RollBack {
    std::string policy;
    uint64_t number;
    WeightsVersion about;
    VersionDone done;
  };
  struct Stop {};
  using Message = std::variant<Decided, Told, Wake, Save, Keep, RollBack, Stop>;
  struct Place : NamedLearner {
    bool failed = false;
  };

  // Which decisions are learned from: as many as the allowance, saved up for bursts, is enough for.
  // It knows those left out until they end, as facts about them shall not wake this thread. Those
  // of an earlier run are not known and may be learned from.
  class Sample {
   public:
    bool take(uint64_t id, bool room, double per_s);
    bool left_out(uint64_t id) const;
    // As left_out(), and nothing more will be asked about it.
    bool end_left_out(uint64_t id);

   private:
    static constexpr double kMost = 1024;
    mutable std::mutex mutex_;
    double left_ = kMost;
    std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
    std::unordered_set<uint64_t> left_out_;
  };

  void run();
  void handle(Message message);
  template <class Fact>
  void tell(Fact fact);  // calls fact(learner) for each that is awake
  Place* place_of(const std::string& policy);
  void wake_up(Place& place);
  // kUnavailable, as is logged: what it needs is not installed.
  Status begin(Place& place);
  bool can_train() const;
  void train();
  Result<WeightsVersion> keep(const std::string& policy, WeightsVersion about);
  Result<WeightsVersion> go_back(const RollBack& message);
  Status write() const;
  void publish_status();

  std::vector<Place> places_;
  Sample sample_;
  std::filesystem::path state_dir_;
  TrainingPace pace_;
  VersionArchive archive_;
  std::chrono::steady_clock::time_point may_train_at_{};
  Inbox<Message> inbox_;
  bool stopping_ = false;
  bool changed_ = false;  // since the last save

  mutable std::mutex status_mutex_;  // held for a copy only, by whoever
  std::vector<LearnerStatus> status_;

  std::thread thread_;
};

}  // namespace tierpilot
