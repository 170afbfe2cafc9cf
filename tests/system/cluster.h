// One coordinator and some node daemons, as real processes with folders and sockets of their own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/rpc/test_certificates.h"
#include "tests/system/client.h"
#include "tests/system/process.h"

namespace tierpilot::test {

class TestAuthority;

// A private folder, removed with the object.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& parent);
  TempFolder(const TempFolder&) = delete;
  ~TempFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Where datasets' fast tier can live; otherwise why a cluster cannot run here.
std::optional<std::string> cluster_unavailable();

struct ClusterOptions {
  int nodes = 2;
  int units = 2;  // of each node
  int64_t lease_ms = 10'000;
  int max_attempts = 3;
  int drain_s = 0;
  std::string policy = "least-loaded";
  bool calibrate = false;
  // Of each node.
  std::string fast_budget = "32MiB";
  std::string slow_budget = "128MiB";
  // Nodes and coordinator talk over mutual TLS on loopback only, with certificates drawn for it.
  bool tls = false;
  // With TLS: the IP addresses of coordinator and nodes; empty: all on loopback.
  std::vector<std::string> hosts{};
  // Words before a program's own, of the coordinator (-1) or a node.
  std::function<Argv(int process)> prefix{};
  // Of a node; empty: in the cluster's folder.
  std::function<std::filesystem::path(int node)> work_dir{};
  std::function<std::filesystem::path(int node)> slow_dir{};
  bool revocation = false;           // with an empty list of revoked certificates
  int sharing_period_s = 5;          // between decisions about elastic tasks' cores
  int elastic_horizon_s = 600;       // in which a gang's restart with more ranks must pay
  std::string coordinator_more{};    // further sections of its configuration
  std::string node_more{};           // of each node's
  std::optional<uid_t> node_user{};  // whose the nodes' folders are
  std::string node_key{};            // of TLS, in place of the path of its file
  bool others_pass = false;          // tasks with other users reach what is theirs
  bool metrics = false;              // for Prometheus; with TLS only over TLS
  std::filesystem::path state_dir;   // empty: in the cluster's folder
  int keep_history_hours = 720;      // 0: for good
  // The address at which a node finds the coordinator, whose socket it is given; empty: that.
  std::function<std::string(int node, const std::filesystem::path& socket)> way_to_coordinator;
};

class Cluster {
 public:
  // Starts everything and waits until all nodes are up. Throws std::runtime_error with the end of
  // the logs when that fails.
  explicit Cluster(const ClusterOptions& options);
  // Ends everything; a process left behind in the cluster's folder fails the running test.
  ~Cluster();

  // With the client connected when it returns.
  void start_coordinator();
  Process& coordinator() { return coordinator_; }
  void start_node(int node);
  Process& node(int node) { return nodes_.at(static_cast<size_t>(node)); }
  bool nodes_are_up(int count);

  Client& client() { return client_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string address() const;
  std::filesystem::path data_socket(int node) const;
  // With ClusterOptions::tls: where the coordinator listens for other machines, and the options
  // that let a tool in.
  std::string tls_address() const;
  // Who drew the certificates: those of nodes have their names, the tools' is "operator".
  const TestAuthority& authority() const { return *authority_; }
  Argv tls_arguments() const;
  std::string host(int process) const;  // its IP address
  // With ClusterOptions::metrics: "127.0.0.1:port" of a node's, or of the coordinator's (-1).
  std::string metrics_host(int node) const;
  std::filesystem::path state_dir() const;
  static std::string node_name(int node);
  std::string logs() const;

 private:
  void draw_certificates();
  Argv command(int process, const Argv& own) const;
  std::string tls_host(int process) const;
  std::string way_to_coordinator(int node) const;
  void write_configs() const;
  void write_node_config(int node) const;

  ClusterOptions options_;
  TempFolder folder_;
  TempFolder fast_;
  std::unique_ptr<TestAuthority> authority_;
  std::vector<int> ports_;          // the coordinator's, then each node's; empty without TLS
  std::vector<int> metrics_ports_;  // likewise
  Process coordinator_;
  std::vector<Process> nodes_;
  Client client_;
};

}  // namespace tierpilot::test
