#include "tests/chaos/namespaces.h"

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tierpilot::chaos {
namespace {

constexpr const char* kNames = "/run/netns";  // where ip keeps them
constexpr const char* kHub = "hub";
constexpr int kCoordinator = -1;

std::string space_of(int process) {
  return process == kCoordinator ? "coordinator" : test::Cluster::node_name(process);
}

// The hub's end of its link.
std::string port_of(int process) {
  return fmt::format("port{}", process + 1);
}

std::string ip_of(int process) {
  return fmt::format("10.77.0.{}", process + 2);
}

test::Outcome run(const std::string& line) {
  test::Argv words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return test::run_command(words);
}

void must(const std::string& line) {
  const auto outcome = run(line);
  if (outcome.code != 0) throw std::runtime_error(fmt::format("{}: {}", line, outcome.err));
}

// What another call has done or undone already is as well.
void have_blackhole(const std::string& space, const std::string& ip, bool wanted) {
  run(fmt::format("/usr/sbin/ip -n {} route {} blackhole {}/32", space, wanted ? "add" : "del",
                  ip));
}

}  // namespace

Namespaces::Namespaces(int nodes) : nodes_(nodes) {
  ::mkdir(kNames, 0755);
  if (::mount("tierpilot-chaos", kNames, "tmpfs", 0, "size=1m") != 0)
    throw std::runtime_error(fmt::format("{}: {}", kNames, std::strerror(errno)));
  must(fmt::format("/usr/sbin/ip netns add {}", kHub));
  must(fmt::format("/usr/sbin/ip -n {} link add bridge type bridge", kHub));
  must(fmt::format("/usr/sbin/ip -n {} link set bridge up", kHub));
  for (int process = kCoordinator; process < nodes; ++process) add(process);
  try {
    slow(0, true);
    slow(0, false);
  } catch (const std::runtime_error& e) {
    why_not_slow_ = e.what();
  }
}

void Namespaces::add(int process) {
  const auto space = space_of(process), port = port_of(process);
  must("/usr/sbin/ip netns add " + space);
  must(fmt::format("/usr/sbin/ip -n {} link add {} type veth peer name eth0 netns {}", kHub, port,
                   space));
  must(fmt::format("/usr/sbin/ip -n {} link set {} master bridge up", kHub, port));
  must(fmt::format("/usr/sbin/ip -n {} address add {}/24 dev eth0", space, ip_of(process)));
  must(fmt::format("/usr/sbin/ip -n {} link set eth0 up", space));
  must(fmt::format("/usr/sbin/ip -n {} link set lo up", space));
}

void Namespaces::arrange(test::ClusterOptions& options) {
  options.tls = true;
  options.revocation = true;
  for (int process = kCoordinator; process < nodes_; ++process)
    options.hosts.push_back(ip_of(process));
  options.prefix = [before = options.prefix](int process) {
    test::Argv words{"/usr/sbin/ip", "netns", "exec", space_of(process)};
    if (!before) return words;
    const auto more = before(process);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
}

// Both ways: the cable is out, and other nodes are cut off too.
void Namespaces::cut(int node, bool to_coordinator, bool from_coordinator) {
  const bool both = to_coordinator && from_coordinator;
  must(fmt::format("/usr/sbin/ip -n {} link set {} {}", kHub, port_of(node), both ? "down" : "up"));
  have_blackhole(space_of(node), ip_of(kCoordinator), to_coordinator && !both);
  have_blackhole(space_of(kCoordinator), ip_of(node), from_coordinator && !both);
}

void Namespaces::slow(int node, bool slow) {
  shape(space_of(node), "eth0", slow);
  shape(kHub, port_of(node), slow);
}

void Namespaces::shape(const std::string& space, const std::string& link, bool slow) {
  if (slow)
    must(fmt::format(
        "/usr/sbin/tc -n {} qdisc replace dev {} root tbf rate 200kbit burst 8kb latency 400ms",
        space, link));
  else
    run(fmt::format("/usr/sbin/tc -n {} qdisc del dev {} root", space, link));
}

}  // namespace tierpilot::chaos
