// Nodes with certificates that are not valid, and what must be said of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/system/cluster.h"

namespace tierpilot::chaos {

class BadCertificates {
 public:
  // `cluster` talks over TLS, with lists of revoked certificates.
  explicit BadCertificates(test::Cluster& cluster) : cluster_(cluster) {}

  // The node is started with one that has expired, or is of another authority: it has to say so.
  void run_with(int node, bool expired);
  // While everything runs: the node is cut and says why.
  void revoke(int node);
  // No certificate is revoked any more; returns once the node is back.
  void forgive(int node);
  // What was not said.
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  // The log tells it, in time.
  void expect_said(const std::filesystem::path& log, size_t from, const std::string& words);

  test::Cluster& cluster_;
  std::vector<std::string> wrong_;
};

}  // namespace tierpilot::chaos
