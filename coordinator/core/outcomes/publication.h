// What tasks wrote becomes the next versions of their datasets. The versions before stay until the
// new ones are on disk. Event loop thread only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

class Publication {
 public:
  explicit Publication(ClusterState& state) : state_(state) {}

  // What the task wrote are the next versions of their datasets, and nobody else writes those now.
  bool allowed(const Task& task, const std::string& node, const TaskExit& exit) const;
  // The task was given a version of its data that is not the current one any more.
  bool used_is_stale(const Task& task) const;
  // The datasets that have a new version by it, to be written; see durable().
  std::vector<Dataset> publish(const Task& task);
  // These versions are on disk: those before them are needed by nobody any more.
  void durable(const std::vector<Dataset>& written);
  // They could not be written down: nobody may build on them until they are.
  void not_durable(const std::vector<Dataset>& written);
  // An attempt that does not count has left these on the node.
  void superseded(const std::string& node, const std::vector<DatasetVersion>& versions);

  // Until the current version is on disk the one before it is all there is after a crash.
  bool needs_older_version(const std::string& dataset) const { return outdated_.contains(dataset); }

 private:
  ClusterState& state_;
  // Datasets whose current version is not on disk, with the nodes that hold the one before it.
  std::map<std::string, std::set<std::string>> outdated_;
};

}  // namespace tierpilot
