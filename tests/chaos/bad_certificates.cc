#include "tests/chaos/bad_certificates.h"

#include <fmt/format.h>
#include <signal.h>

#include "tests/rpc/test_certificates.h"

namespace tierpilot::chaos {
namespace {

constexpr int kDayOfValidity_s = 86'400;

std::filesystem::path log_of(const test::Cluster& cluster, int node) {
  return cluster.folder() / (test::Cluster::node_name(node) + ".log");
}
std::filesystem::path coordinator_log(const test::Cluster& cluster) {
  return cluster.folder() / "coordinator.log";
}

}  // namespace

void BadCertificates::run_with(int node, bool expired) {
  const auto name = test::Cluster::node_name(node);
  const auto address = "IP:" + cluster_.host(node);
  const auto& folder = cluster_.folder();
  if (expired) {
    cluster_.authority().issue(name, address, {-20 * kDayOfValidity_s, -10 * kDayOfValidity_s});
  } else {
    const test::TestAuthority stranger(folder, "stranger");
    stranger.issue(name, address);
  }
  const size_t before = test::read_text(log_of(cluster_, node)).size();
  cluster_.start_node(node);
  expect_said(log_of(cluster_, node), before,
              expired ? "certificate has expired" : "of an authority that");
}

void BadCertificates::revoke(int node) {
  const size_t before = test::read_text(log_of(cluster_, node)).size();
  cluster_.authority().revoke({cluster_.folder() / (test::Cluster::node_name(node) + ".pem")},
                              test::Validity().until_s);
  cluster_.coordinator().signal(SIGHUP);
  expect_said(log_of(cluster_, node), before, "certificate was revoked");
}

void BadCertificates::forgive(int node) {
  cluster_.authority().revoke({}, test::Validity().until_s);
  const size_t before = test::read_text(coordinator_log(cluster_)).size();
  cluster_.coordinator().signal(SIGHUP);
  // Until then it would not say it again: the same failure is told once.
  expect_said(coordinator_log(cluster_), before,
              fmt::format("node '{}' joined", test::Cluster::node_name(node)));
}

void BadCertificates::expect_said(const std::filesystem::path& log, size_t from,
                                  const std::string& words) {
  std::string said;
  const bool told = test::eventually(
      [&] {
        said = test::read_text(log).substr(from);
        return said.find(words) != std::string::npos;
      },
      std::chrono::seconds(20));
  if (!told)
    wrong_.push_back(
        fmt::format("{} does not say '{}', but: {}", log.filename().string(), words, said));
}

}  // namespace tierpilot::chaos
