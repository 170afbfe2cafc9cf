// Many simulated nodes with many replicas at one coordinator, and a client that asks what an
// operator would.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rpc/address.h"
#include "tests/bench/pipeline/simulated_node.h"

namespace tierpilot::bench {

// What lists say, page after page.
struct Listed {
  uint64_t entries = 0;
  uint64_t replicas = 0;  // of datasets
  uint32_t pages = 0;
};

// On the calling thread. Throws when the coordinator refuses.
class Crowd {
 public:
  Crowd(const Address& coordinator, uint32_t nodes);

  void join();
  // Adds datasets, each at some node.
  void add_datasets(uint32_t count, uint64_t bytes);
  // Every node says that it has all of them; returns when the coordinator knows.
  void hold_all();
  Listed list_nodes();
  Listed list_datasets();
  // Tasks one after another, each with all that it takes from its submit to its recorded end.
  // Nanoseconds. With a dataset where there is one.
  std::vector<int64_t> run_tasks(uint32_t count);

 private:
  wire::Cluster::Client cluster() { return client_->bootstrap().castAs<wire::Cluster>(); }
  int64_t run_task(uint32_t number);

  EventLoop loop_;
  Runs runs_{loop_, 1};
  const Address coordinator_;
  kj::Own<RpcConnection> client_;
  std::vector<SimulatedReplica> datasets_;
  kj::Own<kj::PromiseFulfiller<void>> recorded_;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;
};

}  // namespace tierpilot::bench
