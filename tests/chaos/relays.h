// A relay before the coordinator for each daemon: Unix sockets and partitions without privileges.
#pragma once

#include <memory>
#include <vector>

#include "tests/chaos/relay.h"
#include "tests/chaos/ways.h"

namespace tierpilot::chaos {

class Relays final : public Ways {
 public:
  Relays() : sockets_("/tmp") {}

  std::string name() const override { return "Unix sockets, by a relay each"; }
  void arrange(test::ClusterOptions& options) override {
    options.way_to_coordinator = [this](int node, const std::filesystem::path& coordinator) {
      const auto path = sockets_.path() / (test::Cluster::node_name(node) + ".sock");
      relays_.push_back(std::make_unique<Relay>(path, coordinator));
      return "unix:" + path.string();
    };
  }
  void cut(int node, bool to_coordinator, bool from_coordinator) override {
    relays_.at(static_cast<size_t>(node))->cut(to_coordinator, from_coordinator);
  }
  void slow(int node, bool slow) override { relays_.at(static_cast<size_t>(node))->slow(slow); }

 private:
  test::TempFolder sockets_;
  std::vector<std::unique_ptr<Relay>> relays_;  // by node
};

}  // namespace tierpilot::chaos
