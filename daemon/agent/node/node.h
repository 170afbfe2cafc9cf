// The running node: every part, made in the order in which they need each other.
#pragma once

#include <memory>

#include "base/result.h"
#include "daemon/config.h"

namespace tierpilot::agent {

class Node {
 public:
  // Call it before the process has threads. Returns when the node serves; the coordinator need not
  // be there. Takes as long as calibration does.
  static Result<std::unique_ptr<Node>> start(const NodeConfig& config);
  ~Node();

  // Until SIGTERM or SIGINT (0), until the node cannot go on (1), or until it has to begin anew
  // (75).
  int run();

 private:
  struct Parts;
  explicit Node(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tierpilot::agent
