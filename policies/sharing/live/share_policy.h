// Decisions on shares in time: where a job that waits starts and with how much, what running jobs
// have from then on, and which promises can be made. Pure, but for what adjust() remembers: the
// coordinator and the simulation use the same objects, call them in turn and do what they say.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policies/interface/module.h"
#include "policies/sharing/interference/kept.h"
#include "policies/sharing/live/live_unit.h"

namespace tierpilot::sharing {

struct Start {
  size_t node = 0;
  size_t unit = 0;
  Share share;
  std::vector<std::pair<uint64_t, uint32_t>> shrunk;  // jobs there that have less from now on
  std::vector<uint64_t> preempted;  // jobs there that have to end before, by checkpoint
  std::string reason;
};

struct Preempted {
  uint64_t job = 0;
  std::string_view reason;  // for people, of static duration
};

struct Adjustment {
  std::vector<std::pair<uint64_t, uint32_t>> milli;  // by job: from now on; who shrinks comes first
  std::vector<Preempted> preempted;                  // by checkpoint, then back to the queue

  bool preempts(uint64_t job) const {
    return std::any_of(preempted.begin(), preempted.end(),
                       [job](const Preempted& each) { return each.job == job; });
  }
};

struct Admission {
  bool admitted = true;
  double earliest_s = 0;  // of a promise that could be kept; 0: not known
  std::string reason;
};

// Promises that are asked for one after the other, beside all that units are to do already.
class Promises {
 public:
  virtual ~Promises() = default;
  // Whether the job's promise is to be made.
  virtual Admission ask(const WaitingJob& job) = 0;
  // From now on it waits before those that are asked for.
  virtual void add(const WaitingJob& job) = 0;
};

// Makes each.
std::unique_ptr<Promises> all_promises();

// What is left of a job's speed beside one neighbour; of several the product.
using Retained = std::function<Kept(const Sharer& victim, const Sharer& neighbour)>;

class SharePolicy {
 public:
  virtual ~SharePolicy() = default;
  // Of jobs that wait, those of latency-sensitive ones first, else in the order that they came.
  // Nothing: it waits on.
  virtual std::optional<Start> place(const std::vector<LiveNode>& nodes, const WaitingJob& job) = 0;
  // Why the job does not start there beside those that are there, for people; empty: it may. That
  // some of them could end for it counts as no room.
  virtual std::string refusal(const LiveUnit& unit, const WaitingJob& job) const = 0;
  // Every few seconds, and after somebody has come or gone.
  virtual Adjustment adjust(const LiveUnit& unit) = 0;
  // `ahead` waits already, `coming` are all that will be asked for. The nodes outlive it.
  virtual std::unique_ptr<Promises> promises(const std::vector<LiveNode>& nodes,
                                             const std::vector<WaitingJob>& ahead,
                                             const std::vector<WaitingJob>& coming) = 0;
  // Of one job.
  Admission admit(const std::vector<LiveNode>& nodes, const std::vector<WaitingJob>& ahead,
                  const WaitingJob& job) {
    return promises(nodes, ahead, {job})->ask(job);
  }
};

// Made of what neighbours leave of a job's speed; empty: they do not slow each other.
using SharePolicyModule = PolicyModule<SharePolicy, Retained>;
const ModuleList<SharePolicyModule>& share_policies();

// kNotFound names the policies.
Result<std::unique_ptr<SharePolicy>> make_share_policy(std::string_view name, Retained retained);

}  // namespace tierpilot::sharing
