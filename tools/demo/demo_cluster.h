// The demonstration's coordinator and nodes, running.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/cluster/connection.h"
#include "tools/demo/daemon_process.h"
#include "tools/demo/layout.h"
#include "tools/demo/progress.h"

namespace tierpilot::demo {

class DemoCluster {
 public:
  // Starts the daemons, the nodes one after another so that none disturbs another's measurements,
  // and waits until all are registered. Whoever guards this process ends them.
  static Result<std::unique_ptr<DemoCluster>> start(const Layout& layout, Progress& progress);

  ClusterConnection& connection() { return *connection_; }
  // An error when one of the daemons has died.
  Status check();
  // What every node measured: message_json of each tier, with "node" in front.
  Result<nlohmann::ordered_json> tiers();
  // Until every node's fast tier is empty again.
  Status wait_until_empty();

 private:
  Status start_coordinator(const Layout& layout, const std::string& program);
  Status start_node(const NodePlan& node, const std::string& program);
  Status wait_for_node(const std::string& name);

  std::vector<DaemonProcess> daemons_;
  std::unique_ptr<ClusterConnection> connection_;
};

}  // namespace tierpilot::demo
