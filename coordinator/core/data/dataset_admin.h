// Adding and removing datasets. Event loop thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

inline constexpr uint32_t kMostReplicas = 16;

class DatasetAdmin {
 public:
  using Added = std::function<void(Result<Dataset>)>;
  using Removed = std::function<void(Status)>;

  // See WriteCopies::when_kept().
  using WhenKept = std::function<void(const DatasetVersion&, std::function<void()> done)>;

  // `available` is called when a dataset has come into being; without `when_kept` nobody waits for
  // second copies.
  DatasetAdmin(ClusterState& state, std::function<void()> available, WhenKept when_kept = {})
      : state_(state), available_(std::move(available)), when_kept_(std::move(when_kept)) {}

  // Makes the home copy on `node` (empty: the one with most room) and answers when it is on disk
  // there, known here, and kept by `replicas` nodes (0: as configured) or as many as can take it.
  // The same request id again answers the dataset that it made; kExhausted when too many ask.
  void add(const std::string& request_id, const std::string& name, const DatasetSource& source,
           const std::string& node, Added added, uint32_t replicas = 0);
  // kConflict while tasks that have not ended name it. What nodes hold under that name outside of
  // the catalog goes too.
  void remove(const std::string& name, Removed removed);

 private:
  // Whether one of this name can be made.
  Status check_free(const std::string& name) const;
  // Sends `node` away what it holds of a dataset; nothing if it is not connected.
  void drop(const std::string& node, const std::string& name);
  // Nodes that may have something of it when they are back.
  std::set<std::string> who_is_owed(const Catalog::Entry& entry) const;
  // Its removal is on disk, with `owed`, the nodes that may hold some of it.
  void drop_everywhere(const std::string& name, const std::set<std::string>& owed);
  Result<NodeRecord*> choose_node(const std::string& wanted);
  void created(const std::string& node, uint64_t instance, Dataset dataset,
               Result<DatasetVersion> made, Added added);
  void answer_when_kept(const Dataset& dataset, const Added& added);

  ClusterState& state_;
  std::function<void()> available_;
  WhenKept when_kept_;
  std::set<std::string> making_;
  std::map<std::string, std::vector<Removed>> removing_;  // who is to be told
  std::map<std::string, size_t> adding_;                  // who waits for copies, by dataset
};

}  // namespace tierpilot
