#include "tests/chaos/faults.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <thread>

#include "tests/chaos/writers.h"
#include "tests/rpc/test_certificates.h"

namespace tierpilot::chaos {
namespace {

constexpr int kDay_s = 86'400;
constexpr const char* kWarden = "tierpilot-ward";  // the kernel cuts its name

// 0: it has none, or is dead.
pid_t warden_of(pid_t daemon) {
  const auto children = test::read_text("/proc/" + std::to_string(daemon) + "/task/" +
                                        std::to_string(daemon) + "/children");
  for (const char* at = children.c_str();;) {
    char* end = nullptr;
    const long child = std::strtol(at, &end, 10);
    if (end == at) return 0;
    at = end;
    if (test::read_text("/proc/" + std::to_string(child) + "/comm").starts_with(kWarden))
      return static_cast<pid_t>(child);
  }
}

std::filesystem::path log_of(const test::Cluster& cluster, int node) {
  return cluster.folder() / (test::Cluster::node_name(node) + ".log");
}
std::filesystem::path coordinator_log(const test::Cluster& cluster) {
  return cluster.folder() / "coordinator.log";
}

}  // namespace

Faults::Faults(Surroundings surroundings, uint64_t seed)
    : with_(surroundings),
      kinds_{{"coordinator killed", &Faults::kill_coordinator},
             {"coordinator ended", &Faults::stop_coordinator},
             {"coordinator paused", &Faults::pause_coordinator},
             {"daemon killed", &Faults::kill_daemon},
             {"daemon ended", &Faults::stop_daemon},
             {"daemon paused", &Faults::pause_daemon},
             {"partition", &Faults::partition},
             {"starts refused", &Faults::refuse_starts},
             {"killed in a dataset's commit", &Faults::kill_in_commit}},
      random_(seed) {
  if (!with_.ways.why_not_slow()) kinds_.emplace_back("slow link", &Faults::slow_link);
  if (with_.disks) kinds_.emplace_back("work folder full", &Faults::fill_work_folder);
  if (with_.disks) kinds_.emplace_back("slow tier full", &Faults::fill_slow_tier);
  if (with_.clocks) kinds_.emplace_back("wall clock set", &Faults::set_clock);
  if (with_.tls) kinds_.emplace_back("bad certificate", &Faults::show_bad_certificate);
  if (with_.tls) kinds_.emplace_back("certificate revoked", &Faults::revoke_certificate);
}

void Faults::sleep(int from_ms, int to_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(draw(from_ms, to_ms)));
}

void Faults::strike() {
  const auto& [name, fault] =
      kinds_.at(static_cast<size_t>(draw(0, static_cast<int>(kinds_.size()) - 1)));
  ++counts_[name];
  (this->*fault)();
  sleep(0, 300);
  revive();
}

// As a service manager would.
void Faults::revive() {
  if (!with_.cluster.coordinator().running()) with_.cluster.start_coordinator();
  for (int node = 0; node < with_.nodes; ++node)
    if (!with_.cluster.node(node).running()) with_.cluster.start_node(node);
}

void Faults::last(int from_ms, int to_ms) {
  const int ms = draw(from_ms, to_ms);
  if (lasting_ || draw(1, 3) > 1) return sleep(ms, ms);
  lasting_ = true;
  sleep(ms / 2, ms / 2);
  ++counts_["second fault at once"];
  draw(0, 1) == 0 ? kill_coordinator() : kill_daemon();
  sleep(ms / 2, ms / 2);
  lasting_ = false;
}

void Faults::restart_coordinator(int after_ms) {
  sleep(0, after_ms);
  with_.cluster.start_coordinator();
}

void Faults::restart_node(int node, int after_ms) {
  sleep(0, after_ms);
  with_.cluster.start_node(node);
}

void Faults::kill_coordinator() {
  with_.cluster.coordinator().kill_now();
  restart_coordinator(800);
}

void Faults::stop_coordinator() {
  with_.cluster.coordinator().end();
  restart_coordinator(0);
}

void Faults::pause_coordinator() {
  with_.cluster.coordinator().signal(SIGSTOP);
  sleep(50, 2'500);
  with_.cluster.coordinator().signal(SIGCONT);
}

void Faults::kill_daemon() {
  const int node = any_node();
  with_.cluster.node(node).kill_now();
  restart_node(node, 2'500);
}

void Faults::stop_daemon() {
  const int node = any_node();
  with_.cluster.node(node).end();
  restart_node(node, 500);
}

// Shorter and longer than the lease.
void Faults::pause_daemon() {
  auto& daemon = with_.cluster.node(any_node());
  const pid_t paused = daemon.pid();
  daemon.signal(SIGSTOP);
  last(50, 3'500);
  if (daemon.pid() == paused) daemon.signal(SIGCONT);
}

void Faults::partition() {
  const int node = any_node(), ways = draw(1, 3);
  ++counts_[ways == 1   ? "partition: to the coordinator"
            : ways == 2 ? "partition: from the coordinator"
                        : "partition: both ways"];
  with_.ways.cut(node, ways & 1, ways & 2);
  last(100, 3'500);
  with_.ways.cut(node, false, false);
}

void Faults::slow_link() {
  const int node = any_node();
  with_.ways.slow(node, true);
  last(300, 3'500);
  with_.ways.slow(node, false);
}

void Faults::fill_work_folder() {
  const int node = any_node();
  with_.disks->fill_work(node);
  last(300, 2'500);
  with_.disks->empty(node);
}

void Faults::fill_slow_tier() {
  const int node = any_node();
  with_.disks->fill_slow_tier(node);
  last(300, 2'500);
  with_.disks->empty(node);
}

// To and fro by up to two days, or for good: others' clocks then differ until it is set again.
void Faults::set_clock() {
  const int process = draw(-1, with_.nodes - 1);
  with_.clocks->set(process, draw(-2 * kDay_s, 2 * kDay_s));
  last(100, 2'000);
  if (draw(0, 1) == 0) with_.clocks->set(process, 0);
}

// The warden finds no descriptors for the next task.
void Faults::refuse_starts() {
  const auto& daemon = with_.cluster.node(any_node());
  const pid_t warden = warden_of(daemon.pid());
  rlimit before{};
  if (warden == 0 || ::prlimit(warden, RLIMIT_NOFILE, nullptr, &before) != 0) return;
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ::prlimit(warden, RLIMIT_NOFILE, &none, nullptr);
  last(300, 2'000);
  if (warden_of(daemon.pid()) == warden) ::prlimit(warden, RLIMIT_NOFILE, &before, nullptr);
}

// Just when a writer has ended: its node, the coordinator or both.
void Faults::kill_in_commit() {
  const auto journal = with_.cluster.folder() / "journal";
  const auto before = Writers::last_end(journal);
  std::optional<std::string> end;
  if (!test::eventually([&] { return (end = Writers::last_end(journal)) != before && end; },
                        std::chrono::milliseconds(1'500)))
    return;
  ++counts_["killed in a dataset's commit: there was one"];
  int node = 0;
  while (node < with_.nodes - 1 && !end->starts_with(test::Cluster::node_name(node) + " ")) ++node;
  const int who = draw(1, 3);
  sleep(0, 15);
  if (who & 1) with_.cluster.node(node).kill_now();
  if (who & 2) with_.cluster.coordinator().kill_now();
  sleep(0, 500);
  if (who & 2) with_.cluster.start_coordinator();
  if (who & 1) restart_node(node, 1'500);
}

void Faults::show_bad_certificate() {
  const int node = any_node();
  const bool expired = draw(0, 1) == 0;
  ++counts_[expired ? "bad certificate: expired" : "bad certificate: of another authority"];
  with_.cluster.node(node).end();
  run_with_bad_certificate(node, expired);
  with_.cluster.node(node).end();
  with_.cluster.authority().issue(test::Cluster::node_name(node), "IP:" + with_.cluster.host(node));
  with_.cluster.start_node(node);
}

// It has to say what is wrong with it.
void Faults::run_with_bad_certificate(int node, bool expired) {
  const auto name = test::Cluster::node_name(node);
  const auto address = "IP:" + with_.cluster.host(node);
  const auto& folder = with_.cluster.folder();
  if (expired) {
    with_.cluster.authority().issue(name, address, {-20 * kDay_s, -10 * kDay_s});
  } else {
    const test::TestAuthority stranger(folder, "stranger");
    stranger.issue(name, address);
  }
  const size_t before = test::read_text(log_of(with_.cluster, node)).size();
  with_.cluster.start_node(node);
  expect_said(log_of(with_.cluster, node), before,
              expired ? "certificate has expired" : "of an authority that");
}

// While everything runs: the node is cut, says why, and is back when the list is empty again.
void Faults::revoke_certificate() {
  const int node = any_node();
  auto& cluster = with_.cluster;
  const size_t before = test::read_text(log_of(cluster, node)).size();
  cluster.authority().revoke({cluster.folder() / (test::Cluster::node_name(node) + ".pem")},
                             test::Validity().until_s);
  cluster.coordinator().signal(SIGHUP);
  expect_said(log_of(cluster, node), before, "certificate was revoked");
  last(0, 1'500);
  cluster.authority().revoke({}, test::Validity().until_s);
  revive();
  const size_t joined_before = test::read_text(coordinator_log(cluster)).size();
  cluster.coordinator().signal(SIGHUP);
  // Until then it would not say it again: the same failure is told once.
  expect_said(coordinator_log(cluster), joined_before,
              fmt::format("node '{}' joined", test::Cluster::node_name(node)));
}

void Faults::expect_said(const std::filesystem::path& log, size_t from, const std::string& words) {
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

void Faults::heal() {
  for (int node = 0; node < with_.nodes; ++node) {
    with_.ways.cut(node, false, false);
    if (!with_.ways.why_not_slow()) with_.ways.slow(node, false);
    if (with_.disks) with_.disks->empty(node);
  }
  for (int process = -1; with_.clocks && process < with_.nodes; ++process)
    with_.clocks->set(process, 0);
  with_.cluster.coordinator().signal(SIGCONT);
  for (int node = 0; node < with_.nodes; ++node) with_.cluster.node(node).signal(SIGCONT);
  revive();
}

}  // namespace tierpilot::chaos
