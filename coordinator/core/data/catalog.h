// The datasets of the cluster: current version, home, who holds what, who writes.
// Event loop thread only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/model.h"

namespace tierpilot {

class Catalog {
 public:
  // What a task has written and what becomes the current version once it is on enough nodes.
  struct Next {
    DatasetVersion what;
    std::map<std::string, ReplicaState> copies;  // by node
  };
  // A version that is on disk, and who has it.
  struct Stored {
    Dataset dataset;
    std::map<std::string, ReplicaState> replicas;  // by node
  };
  struct Entry {
    Dataset dataset;
    std::map<std::string, ReplicaState> replicas;  // by node
    std::optional<Stored> on_disk;  // while `dataset` is a later version, which is not there yet
    bool unwritten = false;         // that could not be written down so far: nobody builds on it
    uint64_t writer = 0;            // the task that may write; 0: none
    std::optional<Next> next;       // of the writer, whose processes have ended
    std::set<uint64_t> users;       // active tasks that name it
    // Nodes that had an older version when they were last heard of it, and may be dropping it.
    std::set<std::string> outdated;
    // What nodes were told to discard, until they say that it is gone or join anew: a task that
    // makes the same bytes there meanwhile has not made them to stay.
    std::map<std::string, std::set<std::pair<uint64_t, ContentDigest>>> discarded;

    // What may be told: a version that is not on disk a power cut would undo.
    Dataset told() const;
    const std::map<std::string, ReplicaState>& told_replicas() const {
      return on_disk ? on_disk->replicas : replicas;
    }
  };

  Entry* find(const std::string& name);
  const Entry* find(const std::string& name) const;
  const std::map<std::string, Entry>& all() const { return entries_; }
  // What may be told: also one whose removal is not on disk yet.
  const Entry* told(const std::string& name) const;
  // The one that follows in the order of names; null: there is none.
  const Entry* next_told(const std::string& after) const;
  Entry& put(Dataset dataset);
  // Its removal is being written down: no work finds it any more, reports about it still count.
  void begin_removal(const std::string& name);
  // It is gone, or is here again as the write failed.
  void end_removal(const std::string& name, bool removed);
  bool is_being_removed(const std::string& name) const { return leaving_.contains(name); }

  // A node's report. True when what it holds is of no use: an unknown dataset, a version that is
  // not the current one, or other bytes under its number.
  bool apply(const std::string& node, const std::string& name, const ReplicaState& state);
  // Datasets of older stores have no digest yet: it is that of the copy that would have counted as
  // a replica. True if this is one, and the digest to be written down.
  bool learns_digest(const std::string& node, const std::string& name, const ReplicaState& state);
  // Nodes that hold a dataset of this name, which is not in the catalog: it was made or dropped
  // while the coordinator, its disk or the connection failed.
  std::set<std::string> strays(const std::string& name) const;
  // What each of them last told of it.
  std::map<std::string, ReplicaState> stray_states(const std::string& name) const;
  // Of one node; of more than that nothing is known.
  static constexpr size_t kMostStrays = 100'000;
  size_t stray_names() const { return strays_.size(); }
  // The node is away: nothing can be had from it.
  void forget_node(const std::string& node);

  // Bytes of the task's datasets that the node holds in the current version.
  struct Held {
    uint64_t fast_bytes = 0;
    uint64_t slow_bytes = 0;
  };
  Held held(const TaskSpec& spec, const std::string& node) const;
  uint64_t data_bytes(const TaskSpec& spec) const;
  // How many datasets each node holds, in whichever version; all at once, as it goes through them.
  std::unordered_map<std::string, uint32_t> counts() const;

  // What keeps the task from being placed now; empty when nothing does.
  std::string blocked_by(const Task& task) const;
  void lock_writes(const Task& task);
  void unlock_writes(const Task& task);
  void add_user(const Task& task);
  void remove_user(const Task& task);

 private:
  struct StraysOfNode {
    size_t names = 0;
    bool were_too_many = false;
  };

  void put_stray(const std::string& node, const std::string& name, const ReplicaState& state);
  void remove_stray(const std::string& node, const std::string& name);

  std::map<std::string, Entry> entries_;
  std::map<std::string, Entry> leaving_;
  std::map<std::string, std::map<std::string, ReplicaState>> strays_;  // by name and node
  std::map<std::string, StraysOfNode> strays_of_;                      // by node
};

// Letters, digits, '.', '-' and '_', not starting with '.', at most 128 bytes.
bool is_dataset_name(const std::string& name);

}  // namespace tierpilot
