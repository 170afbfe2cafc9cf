// The real programs over mutual TLS: nodes, coordinator and tools, and who is not let in.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>

#include "base/text/json_text.h"
#include "tests/rpc/test_certificates.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

class TlsCluster : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!cluster_unavailable()) cluster_ = std::make_unique<Cluster>(ClusterOptions{.tls = true});
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
  static Outcome tierctl(const Argv& connect, const Argv& arguments) {
    Argv argv{program("TIERPILOT_TEST_TIERCTL")};
    argv.insert(argv.end(), connect.begin(), connect.end());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_command(argv);
  }
  static inline std::unique_ptr<Cluster> cluster_;
};

TEST_F(TlsCluster, ATaskFetchesItsDataFromAnotherNode) {
  const auto source = cluster_->folder() / "words.txt";
  std::ofstream(source) << "over the wire\n";
  const auto connect = cluster_->tls_arguments();
  const auto added =
      tierctl(connect, {"dataset", "add", "words", "--file", source.string(), "--node", "n1"});
  ASSERT_EQ(added.code, 0) << added.err;
  const auto ran =
      tierctl(connect, {"-j", "task", "submit", "--node", "n2", "--dataset", "words", "--wait",
                        "--", "/bin/sh", "-c", "cat $TIERPILOT_DATASET_WORDS"});
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  const auto task = parse_json<Json>(ran.out)["tasks"][0];
  EXPECT_EQ(task["node"], "n2");
  const auto log = tierctl(connect, {"task", "logs", task["id"].dump()});
  EXPECT_EQ(log.out, "over the wire\n") << log.err;
  const auto served = cluster_->client().show(task["id"]);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ((*served)["served"]["fetched_bytes"], 14);
}

TEST_F(TlsCluster, WithoutACertificateNobodyGetsIn) {
  const auto outcome = tierctl({"--connect", cluster_->tls_address()}, {"node", "list"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("--tls-"), std::string::npos) << outcome.err;
}

TEST_F(TlsCluster, AStrangersCertificateIsRefused) {
  const TempFolder folder("/tmp");
  const TestAuthority stranger(folder.path(), "stranger");
  const auto files = stranger.issue("operator", "IP:127.0.0.1");
  // Its own authority for the handshake to reach the coordinator's check of the client.
  const auto outcome = tierctl({"--connect", cluster_->tls_address(), "--tls-ca",
                                (cluster_->folder() / "cluster-ca.pem").string(), "--tls-cert",
                                files.certificate, "--tls-key", files.key},
                               {"node", "list"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find(cluster_->tls_address()), std::string::npos) << outcome.err;
}

TEST_F(TlsCluster, ACoordinatorWhoseCertificateIsRevokedIsNotTalkedTo) {
  auto arguments = cluster_->tls_arguments();
  arguments.push_back("--tls-crl");
  arguments.push_back((cluster_->folder() / "cluster-crl.pem").string());
  cluster_->authority().revoke({});
  EXPECT_EQ(tierctl(arguments, {"node", "list"}).code, 0);
  cluster_->authority().revoke({(cluster_->folder() / "coordinator.pem").string()});
  const auto refused = tierctl(arguments, {"node", "list"});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("revoked"), std::string::npos) << refused.err;
}

TEST(Roles, WhoMayOnlyLookIsToldSoAndItIsWrittenDown) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.tls = true,
                   .coordinator_more = "[users]\nread = [\"operator\"]\nothers = \"none\"\n"
                                       "nodes = [\"n1\", \"n2\"]\n"});
  const auto tierctl = [&](const Argv& arguments) {
    Argv argv{program("TIERPILOT_TEST_TIERCTL")};
    for (const auto& part : {cluster.tls_arguments(), arguments})
      argv.insert(argv.end(), part.begin(), part.end());
    return run_command(argv);
  };
  const auto listed = tierctl({"node", "list"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  for (const Argv& change :
       {Argv{"task", "submit", "--", "/bin/true"}, Argv{"node", "cordon", "n1"},
        Argv{"policy", "use", "random"}, Argv{"dataset", "add", "x", "--zero", "1MiB"}}) {
    const auto refused = tierctl(change);
    EXPECT_NE(refused.code, 0) << change[0];
    EXPECT_NE(refused.err.find("user 'operator'"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("role"), std::string::npos) << refused.err;
  }
  // The coordinator's own user on its machine is not bound by them.
  auto secret = shell_task("true");
  secret.env = {{"TOKEN", "of-nobody-else"}};
  ASSERT_TRUE(cluster.client().submit({secret}));
  const auto seen = tierctl({"task", "show", "1", "-j"});
  EXPECT_EQ(seen.code, 0) << seen.err;
  EXPECT_EQ(seen.out.find("of-nobody-else"), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("shown to its submitter"), std::string::npos) << seen.out;
  const auto own = run_command({program("TIERPILOT_TEST_TIERCTL"), "--connect", cluster.address(),
                                "task", "show", "1", "-j"});
  EXPECT_NE(own.out.find("of-nobody-else"), std::string::npos) << own.out << own.err;
  const auto log = read_text(cluster.folder() / "coordinator.log");
  EXPECT_NE(log.find("audit: user 'operator' over tls: order node 'n1': cordon: refused"),
            std::string::npos)
      << log;
  EXPECT_TRUE(eventually([&] {
    return read_text(cluster.folder() / "coordinator.log").find("over unix: submit task 1\n") !=
           std::string::npos;
  }));
}

// A list of certificates, and what becomes of who is on it, without a restart of anything.
TEST(Revocation, ANodeIsCutAndComesBackWithANewCertificate) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.lease_ms = 3000, .tls = true, .revocation = true});
  const auto tierctl = [&](const Argv& arguments) {
    Argv argv{program("TIERPILOT_TEST_TIERCTL")};
    for (const auto& part : {cluster.tls_arguments(), arguments})
      argv.insert(argv.end(), part.begin(), part.end());
    return run_command(argv);
  };
  const auto state = [&](int node) -> std::string {
    const auto nodes = cluster.client().nodes();
    for (const auto& each : nodes ? *nodes : Json::array())
      if (each["info"]["name"] == Cluster::node_name(node)) return each["state"];
    return "";
  };
  const auto certificate = [&](const std::string& name) {
    return (cluster.folder() / (name + ".pem")).string();
  };
  ASSERT_EQ(tierctl({"node", "list"}).code, 0);
  // By the change of the files alone.
  cluster.authority().revoke({certificate("n2"), certificate("operator")});
  EXPECT_TRUE(eventually([&] { return state(1) != "up"; })) << cluster.logs();
  EXPECT_EQ(state(0), "up");
  const auto refused = tierctl({"node", "list"});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("certificate"), std::string::npos) << refused.err;
  // A list that cannot be read changes nothing.
  std::ofstream(cluster.folder() / "cluster-crl.pem") << "no list";
  cluster.coordinator().signal(SIGHUP);
  EXPECT_TRUE(eventually([&] {
    return read_text(cluster.folder() / "coordinator.log").find("stays in use") !=
           std::string::npos;
  }));
  EXPECT_NE(tierctl({"node", "list"}).code, 0);

  const auto old = certificate("n2") + ".old";
  std::filesystem::copy_file(certificate("n2"), old);
  cluster.authority().revoke({old});
  cluster.authority().issue("n2", "IP:127.0.0.1");
  cluster.authority().issue("operator", "IP:127.0.0.1");
  EXPECT_TRUE(eventually([&] { return cluster.nodes_are_up(2); })) << cluster.logs();
  EXPECT_EQ(tierctl({"node", "list"}).code, 0);
}

TEST(Roles, AreReadAgainOnAReload) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.nodes = 1,
                   .tls = true,
                   .coordinator_more = "[users]\nread = [\"operator\"]\nothers = \"none\"\n"});
  const auto submit = [&] {
    Argv argv{program("TIERPILOT_TEST_TIERCTL")};
    for (const auto& part : {cluster.tls_arguments(), Argv{"task", "submit", "--", "/bin/true"}})
      argv.insert(argv.end(), part.begin(), part.end());
    return run_command(argv);
  };
  EXPECT_NE(submit().code, 0);
  const auto file = cluster.folder() / "coordinator.toml";
  auto text = read_text(file);
  const std::string before = "read = [\"operator\"]";
  text.replace(text.find(before), before.size(), "submit = [\"operator\"]");
  std::ofstream(file) << text;
  cluster.coordinator().signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return submit().code == 0; })) << cluster.logs();
  // A file that is wrong leaves them as they are.
  std::ofstream(file) << text + "[nonsense]\nx = 1\n";
  cluster.coordinator().signal(SIGHUP);
  EXPECT_TRUE(eventually([&] {
    return read_text(cluster.folder() / "coordinator.log").find("[users] stays as it was") !=
           std::string::npos;
  }));
  EXPECT_EQ(submit().code, 0);
}

}  // namespace
}  // namespace tierpilot::test
