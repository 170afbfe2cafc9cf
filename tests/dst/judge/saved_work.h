// What jobs have saved of their work, and what their tries go on from: never from less than they
// were told is safe, and never from what is another job's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/model.h"
#include "model/checkpoint_name.h"
#include "tests/dst/judge/contents.h"

namespace tierpilot::dst {

class SavedWork {
 public:
  using Violated = std::function<void(const std::string& invariant, std::string what)>;
  // `tell`: what happens, for people.
  SavedWork(Violated violated, std::function<void(const std::string&)> tell)
      : violated_(std::move(violated)), tell_(std::move(tell)) {}

  // Its node has it. `is_told`: to its job, which ran on until then.
  void saved(const CheckpointName& name, Digest content, int64_t now_ns, bool is_told = true);
  // The job was told that the one of this iteration outlives its node.
  void told_safe(uint64_t job, uint64_t iteration);
  bool is_told_safe(const CheckpointName& name) const { return safe_.contains(name); }
  // Oldest first.
  std::vector<CheckpointName> of(uint64_t job) const;
  // Its job has heard that it is saved.
  bool is_told(const CheckpointName& name) const;
  Digest content(const CheckpointName& name) const;
  // Some user was told that it is removed.
  void removed(const CheckpointName& name);
  bool is_removed(const CheckpointName& name) const { return removed_.contains(name); }
  // A copy of it was found damaged, or went with a disk.
  void spoil(const std::string& dataset);
  // The newest one that was told to be safe; nothing where that was removed, or it or a later one
  // is spoilt.
  std::optional<CheckpointName> newest_safe(uint64_t job) const;

  // A try of the job was placed. `least`: what it could have begun from then.
  void placed(uint64_t job, uint32_t attempt, std::optional<CheckpointName> least,
              const std::string& why);
  // Some process is given this checkpoint, as of this content.
  void given(const CheckpointName& name, Digest content);
  struct Begin {
    std::string checkpoint;  // empty: from nothing
    bool saves = false;
    int64_t at_ns = 0;
  };
  // A process of the try begins.
  void began(uint64_t job, uint32_t attempt, const Begin& begin);

  // It is to give its share up, and was asked for a checkpoint over this connection; it has heard.
  using Connection = std::shared_ptr<const int>;
  void asked(AttemptId attempt, const Connection& over, int64_t now_ns);
  void heard(AttemptId attempt, int64_t now_ns);
  // It is told to end for that, over this connection.
  void preempted(AttemptId attempt, const Connection& over, int64_t now_ns);

 private:
  struct Saved {
    Digest content = 0;
    int64_t at_ns = 0;
    bool is_told = false;
  };
  struct Try {
    std::optional<CheckpointName> least;
    std::string why;
    std::optional<Begin> begin{};  // of the first of its processes
  };
  struct Asked {
    std::map<Connection, int64_t> at_ns;  // by connection
    std::optional<int64_t> heard_ns;
  };
  bool has_saved_since(AttemptId attempt, int64_t since_ns) const;

  Violated violated_;
  std::function<void(const std::string&)> tell_;
  std::map<CheckpointName, Saved> saved_;
  std::set<CheckpointName> safe_, removed_, spoilt_;
  std::map<std::pair<uint64_t, uint32_t>, Try> tries_;  // by job and attempt
  std::map<AttemptId, Asked> asked_;
};

// For a job that is to give its share up.
inline constexpr int64_t kPreemptionGraceMs = 2'000;

}  // namespace tierpilot::dst
