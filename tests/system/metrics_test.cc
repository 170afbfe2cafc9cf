// A real Prometheus reads coordinator and daemons; promtool finds nothing to complain of.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>

#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

// Downloaded by tools/check, not installed: the package would start a service.
std::string tool(const char* name) {
  return program("TIERPILOT_TEST_PROMETHEUS") + "/usr/bin/" + name;
}
bool is_there() {
  return std::filesystem::exists(tool("prometheus"));
}

// Without TLS by /dev/tcp of bash, so that no other HTTP client is needed.
std::string page_of(const std::string& host) {
  const auto colon = host.find(':');
  return run_command(
             {"/bin/bash", "-c",
              fmt::format("exec 3<>/dev/tcp/{}/{}; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n'"
                          " >&3; sed '1,/^\\r$/d' <&3",
                          host.substr(0, colon), host.substr(colon + 1))})
      .out;
}

class Metrics : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
  static void run_a_task(Cluster& cluster) {
    const auto ran = run_command({program("TIERPILOT_TEST_TIERCTL"), "--connect", cluster.address(),
                                  "task", "submit", "--wait", "--", "/bin/true"});
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
};

TEST_F(Metrics, PromtoolFindsNothingToComplainOf) {
  if (!is_there()) GTEST_SKIP() << tool("promtool") << " is not there: tools/check downloads it";
  Cluster cluster({.nodes = 1, .calibrate = true, .metrics = true});
  run_a_task(cluster);
  for (const int process : {-1, 0}) {
    const auto file = cluster.folder() / "page";
    const auto page = page_of(cluster.metrics_host(process));
    std::ofstream(file) << page;
    const auto checked = run_command(
        {"/bin/sh", "-c", fmt::format("{} check metrics <{}", tool("promtool"), file.string())});
    EXPECT_EQ(checked.code, 0) << checked.out << checked.err << page;
    EXPECT_EQ(checked.out + checked.err, "") << page;
  }
  const auto page = page_of(cluster.metrics_host(-1));
  for (const char* line :
       {"tierpilot_tasks_ended_total{state=\"succeeded\"} 1\n",
        "tierpilot_task_wait_seconds_count 1\n", "tierpilot_nodes{state=\"up\"} 1\n",
        "tierpilot_decisions_total{policy=\"least-loaded\"} 1\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  EXPECT_NE(page_of(cluster.metrics_host(0)).find("tierpilot_tier_latency_seconds_bucket{tier="),
            std::string::npos);
}

// Long before it would have given up, by itself.
TEST_F(Metrics, AWaitEndsWithItsClient) {
  Cluster cluster({.nodes = 1, .metrics = true});
  const auto waits = [&](int count) {
    const auto line = fmt::format("tierpilot_task_waits {}\n", count);
    return [&cluster, line] {
      return page_of(cluster.metrics_host(-1)).find(line) != std::string::npos;
    };
  };
  {
    Process client({program("TIERPILOT_TEST_TIERCTL"), "--connect", cluster.address(), "task",
                    "submit", "--wait", "--", "/bin/sleep", "300"},
                   cluster.folder() / "client.log");
    ASSERT_TRUE(eventually(waits(1))) << page_of(cluster.metrics_host(-1));
    client.kill_now();
  }
  EXPECT_TRUE(eventually(waits(0), std::chrono::seconds(15))) << page_of(cluster.metrics_host(-1));
}

class Scraper {
 public:
  // Reads all programs of the cluster, every second.
  explicit Scraper(const Cluster& cluster, int nodes, bool tls) : folder_(cluster.folder()) {
    std::string targets = fmt::format("'{}'", cluster.metrics_host(-1));
    for (int node = 0; node < nodes; ++node)
      targets += fmt::format(", '{}'", cluster.metrics_host(node));
    const auto file = [&](const char* name) { return (folder_ / name).string(); };
    std::ofstream(folder_ / "prometheus.yml")
        << "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
        << "- job_name: tierpilot\n"
        << (tls ? fmt::format("  scheme: https\n  tls_config: {{ca_file: {}, cert_file: {}, "
                              "key_file: {}}}\n",
                              file("cluster-ca.pem"), file("operator.pem"), file("operator.key"))
                : "")
        << "  static_configs: [{targets: [" << targets << "]}]\n";
  }

  // Starts Prometheus, waits until a query gives `expected`, and ends it: its answer.
  std::string query_until(const std::string& query, const std::string& expected) {
    const std::string socket = std::to_string(port());
    Process prometheus(
        {tool("prometheus"), "--config.file=" + (folder_ / "prometheus.yml").string(),
         "--storage.tsdb.path=" + (folder_ / "tsdb").string(),
         "--web.listen-address=127.0.0.1:" + socket},
        folder_ / "prometheus.log");
    std::string answer;
    (void)eventually([&] {
      answer =
          run_command({tool("promtool"), "query", "instant", "http://127.0.0.1:" + socket, query})
              .out;
      return answer.find(expected) != std::string::npos;
    });
    prometheus.end();
    return answer;
  }

 private:
  static int port() { return 20'000 + static_cast<int>(::getpid() % 10'000); }
  const std::filesystem::path folder_;
};

TEST_F(Metrics, ARealPrometheusReadsBoth) {
  if (!is_there()) GTEST_SKIP() << tool("prometheus") << " is not there: tools/check downloads it";
  Cluster cluster({.nodes = 2, .metrics = true});
  run_a_task(cluster);
  Scraper scraper(cluster, 2, false);
  const auto up = scraper.query_until("sum(up)", "=> 3 @");
  EXPECT_NE(up.find("=> 3 @"), std::string::npos)
      << up << read_text(cluster.folder() / "prometheus.log");
}

TEST_F(Metrics, ARealPrometheusReadsBothOverTls) {
  if (!is_there()) GTEST_SKIP() << tool("prometheus") << " is not there: tools/check downloads it";
  Cluster cluster({.nodes = 1, .tls = true, .metrics = true});
  Scraper scraper(cluster, 1, true);
  const auto up = scraper.query_until("sum(up)", "=> 2 @");
  EXPECT_NE(up.find("=> 2 @"), std::string::npos)
      << up << read_text(cluster.folder() / "prometheus.log");
}

TEST_F(Metrics, AlertRulesAreValid) {
  if (!is_there()) GTEST_SKIP() << tool("promtool") << " is not there: tools/check downloads it";
  const auto checked =
      run_command({tool("promtool"), "check", "rules",
                   program("TIERPILOT_TEST_SOURCE") + "/docs/monitoring/alerts.yml"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST_F(Metrics, AlertsSpeakWhereTheyHaveToAndNotElsewhere) {
  if (!is_there()) GTEST_SKIP() << tool("promtool") << " is not there: tools/check downloads it";
  const auto source = program("TIERPILOT_TEST_SOURCE");
  auto cases = read_text(source + "/tests/system/alerts_test.yml");
  const std::string rules = "RULES";
  cases.replace(cases.find(rules), rules.size(), source + "/docs/monitoring/alerts.yml");
  TempFolder folder("/tmp");
  const auto file = folder.path() / "alerts.yml";
  std::ofstream(file) << cases;
  const auto checked = run_command({tool("promtool"), "test", "rules", file.string()});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

}  // namespace
}  // namespace tierpilot::test
