// Looking at a dataset's copies where they are, and making damaged ones anew. Event loop thread
// only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Of one node that holds the version, or that was to hold it.
struct NodeCheck {
  std::string node;
  CopyCheck copies;
  std::string error;      // why it could not be looked at, or not be restored; empty: it could
  bool restored = false;  // it keeps a good copy again

  bool is_good() const { return error.empty() && (copies.fast == "good" || copies.slow == "good"); }
  bool is_damaged() const { return copies.fast == "damaged" || copies.slow == "damaged"; }
};

struct DatasetCheck {
  DatasetVersion version;
  std::vector<NodeCheck> nodes;  // by name
};

class DatasetChecker {
 public:
  using Done = std::function<void(Result<DatasetCheck>)>;

  explicit DatasetChecker(ClusterState& state) : state_(state) {}

  // Has every node that holds the current version read its copies and compare them. With `repair`,
  // nodes whose kept copy is damaged get a good one of another node. kNotFound: no such dataset.
  // Answers when all nodes have, or are gone. Who asks for what is under way gets its answer;
  // kExhausted: kMost are.
  static constexpr size_t kMost = 64;
  void check(const std::string& name, bool repair, Done done);

 private:
  struct Round;
  using Asked = std::pair<std::string, bool>;  // dataset, with repair

  void end(const std::shared_ptr<Round>& round);
  void answered(const std::shared_ptr<Round>& round, size_t index, Result<CopyCheck> copies);
  void restore(const std::shared_ptr<Round>& round);
  void one_less(const std::shared_ptr<Round>& round);

  ClusterState& state_;
  std::map<Asked, std::shared_ptr<Round>> rounds_;
};

}  // namespace tierpilot
