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

}  // namespace

Faults::Faults(Surroundings surroundings, uint64_t seed)
    : with_(surroundings), certificates_(surroundings.cluster), random_(seed) {
  kinds_ = {{"coordinator killed", [this] { kill(-1); }},
            {"coordinator ended", [this] { stop(-1); }},
            {"coordinator paused", [this] { pause(-1); }},
            {"daemon killed", [this] { kill(any_node()); }},
            {"daemon ended", [this] { stop(any_node()); }},
            {"daemon paused", [this] { pause(any_node()); }},
            {"partition", [this] { partition(); }},
            {"starts refused", [this] { refuse_starts(); }},
            {"killed in a dataset's commit", [this] { kill_in_commit(); }}};
  if (!with_.ways.why_not_slow()) kinds_.emplace_back("slow link", [this] { slow_link(); });
  if (with_.disks) {
    kinds_.emplace_back("work folder full", [this] { fill_work_folder(); });
    kinds_.emplace_back("slow tier full", [this] { fill_slow_tier(); });
  }
  if (with_.clocks) kinds_.emplace_back("wall clock set", [this] { set_clock(); });
  if (with_.tls) {
    kinds_.emplace_back("bad certificate", [this] { show_bad_certificate(); });
    kinds_.emplace_back("certificate revoked", [this] { revoke_certificate(); });
  }
}

void Faults::sleep(int from_ms, int to_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(draw(from_ms, to_ms)));
}

void Faults::strike() {
  const auto& [name, fault] =
      kinds_.at(static_cast<size_t>(draw(0, static_cast<int>(kinds_.size()) - 1)));
  ++counts_[name];
  fault();
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
  kill(draw(0, 1) == 0 ? -1 : any_node());
  sleep(ms / 2, ms / 2);
  lasting_ = false;
}

test::Process& Faults::process_of(int process) {
  return process < 0 ? with_.cluster.coordinator() : with_.cluster.node(process);
}

void Faults::restart(int process, int after_ms) {
  sleep(0, after_ms);
  process < 0 ? with_.cluster.start_coordinator() : with_.cluster.start_node(process);
}

void Faults::kill(int process) {
  process_of(process).kill_now();
  restart(process, process < 0 ? 800 : 2'500);
}

void Faults::stop(int process) {
  process_of(process).end();
  restart(process, process < 0 ? 0 : 500);
}

// Shorter and longer than the lease.
void Faults::pause(int process) {
  auto& paused = process_of(process);
  const pid_t pid = paused.pid();
  paused.signal(SIGSTOP);
  process < 0 ? sleep(50, 2'500) : last(50, 3'500);
  if (paused.pid() == pid) paused.signal(SIGCONT);
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
  if (who & 1) restart(node, 1'500);
}

void Faults::show_bad_certificate() {
  const int node = any_node();
  const bool expired = draw(0, 1) == 0;
  ++counts_[expired ? "bad certificate: expired" : "bad certificate: of another authority"];
  with_.cluster.node(node).end();
  certificates_.run_with(node, expired);
  with_.cluster.node(node).end();
  with_.cluster.authority().issue(test::Cluster::node_name(node), "IP:" + with_.cluster.host(node));
  with_.cluster.start_node(node);
}

void Faults::revoke_certificate() {
  const int node = any_node();
  certificates_.revoke(node);
  last(0, 1'500);
  revive();
  certificates_.forgive(node);
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
