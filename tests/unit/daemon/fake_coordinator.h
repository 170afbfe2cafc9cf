// A coordinator that believes every node and writes down what it hears.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/content_digest.h"
#include "base/result.h"
#include "model/attempt.h"
#include "rpc/cluster.capnp.h"
#include "rpc/event_loop.h"
#include "rpc/server.h"

namespace tierpilot::testing_support {

struct HeardEvent {
  uint64_t sequence = 0;
  std::string kind;  // replica, served, started, exited
  AttemptId attempt;
  std::string how, reason, dataset, memory_tier;
  int32_t code = 0, pid = 0;
  uint64_t local_bytes = 0, promoted_bytes = 0, fetched_bytes = 0, latency_ns = 0;
  std::vector<uint64_t> written_versions;
};

struct Registration {
  std::string name;
  uint64_t instance = 0;
  std::vector<uint64_t> predecessors;
  std::vector<AttemptId> live;
  std::vector<std::string> replicas;
  std::vector<std::string> tier_roles;
  std::map<std::string, std::string> features;  // name -> "on", or why it is off
  std::string data_address;
};

// Everything happens on the thread of the test, inside run_until().
class FakeCoordinator {
 public:
  FakeCoordinator(std::string socket_path, uint32_t lease_ms);
  ~FakeCoordinator();

  void listen();
  void go_away();

  bool run_until(const std::function<bool()>& done, int64_t timeout_ms = 20'000);
  // Runs the call to its end.
  Status call(kj::Promise<void> promise);
  Status start(AttemptId attempt, const std::vector<std::string>& argv,
               const std::vector<std::pair<std::string, bool>>& datasets = {}, uint64_t version = 1,
               uint32_t units = 1, const std::string& source = "");
  std::string read_log(AttemptId attempt, const std::string& stream);
  const HeardEvent* heard(const std::string& kind, AttemptId attempt) const;

  EventLoop loop;
  uint32_t lease_ms;
  uint64_t dataset_bytes = 1 << 20;
  std::string memory_tier;  // that tasks ask for
  bool acknowledge = true;
  bool answer = true;            // false: updates are left without an answer
  std::optional<Error> refusal;  // of registrations
  uint16_t oldest_protocol = 0;  // that it understands; 0: it does not tell
  std::vector<Registration> registrations;
  std::vector<HeardEvent> events;
  uint64_t updates = 0;
  int farewells = 0;
  std::string takes_none;                  // as the last update said
  std::optional<wire::Node::Client> node;  // the latest to register
  std::map<std::string, wire::Node::Client> nodes;
  // Of each dataset and version that a node has told of; tasks that use one not told get none.
  std::map<std::pair<std::string, uint64_t>, ContentDigest> contents;
  void learn(wire::Replica::Reader replica);

 private:
  class Session;
  class Cluster;
  const std::string path_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace tierpilot::testing_support
