// A network namespace for each process of a cluster, joined by a bridge in one more: TLS over TCP
// and real partitions. They are gone with this process, whatever ends it.
#pragma once

#include "tests/chaos/ways.h"

namespace tierpilot::chaos {

class Namespaces final : public Ways {
 public:
  // After enter_own_mounts(). Throws std::runtime_error with the reason where this is not allowed.
  explicit Namespaces(int nodes);

  std::string name() const override { return "network namespaces, TLS over TCP"; }
  void arrange(test::ClusterOptions& options) override;
  void cut(int node, bool to_coordinator, bool from_coordinator) override;
  void slow(int node, bool slow) override;
  std::optional<std::string> why_not_slow() const override { return why_not_slow_; }

 private:
  void add(int process);
  void shape(const std::string& space, const std::string& link, bool slow);

  const int nodes_;
  std::optional<std::string> why_not_slow_;
};

}  // namespace tierpilot::chaos
