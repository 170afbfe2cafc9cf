// What the coordinator asks of one node. RPC in the product, a fake in tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "coordinator/model.h"
#include "model/rank.h"

namespace tierpilot {

// Addresses that a reader is told of: the best ones do, and an assignment has to fit a message.
inline constexpr size_t kMostSources = 16;

struct DatasetNeed {
  std::string dataset;
  uint64_t version = 0;
  uint64_t bytes = 0;
  bool write = false;
  std::vector<std::string> sources;
  ContentDigest digest{};
  bool is_checkpoint = false;  // that the task begins from
};

// What a node's copies of a version turned out to be: "absent", "good" or "damaged".
struct CopyCheck {
  std::string fast;
  std::string slow;
};

struct Assignment {
  AttemptId attempt;
  TaskSpec spec;
  std::vector<DatasetNeed> datasets;
  int64_t reckoning = 0;  // of those that have their data there, the earliest run first, and
  double place_s = 0;     // of these the least
  std::optional<RankAssignment> rank;
  std::optional<UnitShare> share{};
  std::string user{};  // who submitted it, as the task has it
};

struct FileSource {
  std::string path;
};
struct ZeroSource {
  uint64_t bytes = 0;
};
struct RandomSource {
  uint64_t bytes = 0;
  uint64_t seed = 0;
};
using DatasetSource = std::variant<FileSource, ZeroSource, RandomSource>;

// What a running job is told through its channel.
struct CheckpointNow {
  std::string reason;
};
struct CheckpointEvery {
  double interval_s = 0;      // that loses least
  double cost_s = 0;          // of a checkpoint, and
  double failures_per_h = 0;  // of its units together: what it was reckoned with
};
struct CheckpointSafe {
  uint64_t iteration = 0;
  uint32_t copies = 0;
};
using JobAdvice = std::variant<CheckpointNow, CheckpointEvery, CheckpointSafe>;

class NodeLink {
 public:
  virtual ~NodeLink() = default;
  // Gives the port that it has found for rank 0 of a gang; 0 for others.
  using Started = std::function<void(Result<uint16_t>)>;
  virtual void start(const Assignment& assignment, Started done) = 0;
  virtual void cancel(AttemptId attempt, const std::string& reason) = 0;
  virtual void create_dataset(const std::string& name, const DatasetSource& source,
                              std::function<void(Result<DatasetVersion>)> done) = 0;
  virtual void drop_dataset(const std::string& name, uint64_t below_version) = 0;
  // Just this version with these bytes: the cluster has others under its number, or goes on
  // without.
  virtual void discard_version(const DatasetVersion& what) = 0;
  virtual void set_home(const DatasetVersion& what, bool home) = 0;
  // Makes the node one of those that keep a version, from the sources or from what is there.
  virtual void keep_dataset(const DatasetNeed& need, std::function<void(Status)> done) = 0;
  // Has it read its copies. kNotFound: it has none.
  virtual void verify_dataset(const DatasetVersion& what,
                              std::function<void(Result<CopyCheck>)> done) = 0;
  // Of an elastic task or one with a share of a unit; gives what it has got.
  using Shared = std::function<void(Result<uint32_t>)>;
  virtual void set_share(AttemptId attempt, uint32_t milli_units, Shared done) = 0;
  virtual void tell_job(AttemptId attempt, const JobAdvice& advice) = 0;
  // It is over for the coordinator too. Told with the answer to an update, and not if the node is
  // lost before.
  virtual void release(AttemptId attempt) = 0;
};

}  // namespace tierpilot
