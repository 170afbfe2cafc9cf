#include "tests/system/cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "tests/rpc/test_certificates.h"
#include "tests/support/free_port.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFastParent = "/dev/shm";
constexpr size_t kShownLogBytes = 3000;

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::system_error(errno, std::generic_category(), path.string());
}

std::string tls_section(const fs::path& folder, const std::string& name,
                        const std::string& key = "", bool lists = false) {
  const auto file = [&](const char* end) { return (folder / (name + end)).string(); };
  return fmt::format(
      "[tls]\nca = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n{}",
      (folder / "cluster-ca.pem").string(), file(".pem"), key.empty() ? file(".key") : key,
      lists ? fmt::format("crl = \"{}\"\n", (folder / "cluster-crl.pem").string()) : "");
}

std::vector<std::string> processes_inside(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto cwd = fs::read_symlink(entry.path() / "cwd", ignored).string();
    if (cwd.starts_with(folder.string() + "/"))
      found.push_back(entry.path().filename().string() + " in " + cwd);
  }
  return found;
}

std::string metrics_section(const ClusterOptions& options, const Cluster& cluster, int process) {
  if (!options.metrics) return "";
  return fmt::format("[metrics]\nlisten = \"{}:{}\"\n", options.tls ? "tls" : "http",
                     cluster.metrics_host(process));
}

}  // namespace

TempFolder::TempFolder(const fs::path& parent) {
  // Short: the path of a Unix socket has 107 bytes at most.
  std::string pattern = (parent / "tierpilot-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), pattern);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::optional<std::string> cluster_unavailable() {
  struct statfs info {};
  if (statfs(kFastParent, &info) != 0 || info.f_type != TMPFS_MAGIC)
    return fmt::format("{} is no tmpfs: there is no place for a fast tier", kFastParent);
  if (access(kFastParent, W_OK) != 0) return fmt::format("{} cannot be written", kFastParent);
  return std::nullopt;
}

Cluster::Cluster(const ClusterOptions& options)
    : options_(options),
      folder_("/tmp"),
      fast_(kFastParent),
      nodes_(static_cast<size_t>(options.nodes)),
      client_(address()) {
  for (const auto* folder : {&folder_, &fast_})
    if (options_.others_pass) fs::permissions(folder->path(), fs::perms(0711));
  if (options_.tls) draw_certificates();
  for (int i = -1; options_.metrics && i < options_.nodes; ++i)
    metrics_ports_.push_back(free_port());
  write_configs();
  start_coordinator();
  for (int node = 0; node < options.nodes; ++node) {
    start_node(node);
    // Nodes that measure at the same time on one machine measure each other. One that ended will
    // be told of below.
    if (options.calibrate)
      (void)eventually([&] { return nodes_are_up(node + 1) || !nodes_.at(node).running(); });
  }
  if (!eventually([&] { return nodes_are_up(options.nodes); }, 2 * kPatience))
    throw std::runtime_error("the nodes did not register:\n" + logs());
}

Cluster::~Cluster() {
  client_.disconnect();
  for (auto& node : nodes_) node.end();
  coordinator_.end();
  if (!eventually([&] { return processes_inside(folder()).empty(); }, std::chrono::seconds(20)))
    for (const auto& process : processes_inside(folder()))
      ADD_FAILURE() << "left behind: process " << process;
  if (testing::Test::HasFailure()) std::fprintf(stderr, "%s\n", logs().c_str());
}

void Cluster::draw_certificates() {
  authority_ = std::make_unique<TestAuthority>(folder(), "cluster");
  const auto& authority = *authority_;
  if (options_.revocation) authority.revoke({});
  for (int node = -1; node < options_.nodes; ++node) {
    authority_->issue(node < 0 ? "coordinator" : node_name(node), "IP:" + host(node));
    ports_.push_back(free_port());
  }
  authority_->issue("operator", "IP:127.0.0.1");
}

void Cluster::write_configs() const {
  write_file(
      folder() / "coordinator.toml",
      fmt::format("[coordinator]\nstate_dir = \"{}\"\n[listen]\nunix = \"{}\"\n{}"
                  "[lease]\nduration_ms = {}\n[queue]\nmax_attempts = {}\n"
                  "keep_history_hours = {}\n"
                  "[elastic]\nperiod_s = {}\nhorizon_s = {}\n[policy]\nactive = \"{}\"\n{}{}",
                  state_dir().string(), address(),
                  options_.tls ? fmt::format("tls = \"{}\"\n", tls_address()) +
                                     tls_section(folder(), "coordinator", "", options_.revocation)
                               : "",
                  options_.lease_ms, options_.max_attempts, options_.keep_history_hours,
                  options_.sharing_period_s, options_.elastic_horizon_s, options_.policy,
                  metrics_section(options_, *this, -1), options_.coordinator_more));
  for (int node = 0; node < options_.nodes; ++node) write_node_config(node);
}

void Cluster::write_node_config(int node) const {
  const auto name = node_name(node);
  const auto home = folder() / name;
  const auto work = options_.work_dir ? options_.work_dir(node) : home / "work";
  const auto slow = options_.slow_dir ? options_.slow_dir(node) : home / "slow";
  for (const auto& path : {work, slow, fast_.path() / name}) fs::create_directories(path);
  for (const auto& path : {home, work, slow, fast_.path() / name})
    if (options_.node_user)
      if (chown(path.c_str(), *options_.node_user, *options_.node_user) != 0)
        throw std::system_error(errno, std::generic_category(), path.string());
  const auto listen = options_.tls ? "tls:" + tls_host(node) : "unix:" + data_socket(node).string();
  write_file(
      folder() / (name + ".toml"),
      fmt::format(
          "[node]\nname = \"{}\"\ncoordinator = \"{}\"\ndata_listen = \"{}\"\n"
          "units = {}\nmemory = \"256MiB\"\nwork_dir = \"{}\"\n"
          "cancel_grace_ms = 500\ndrain_s = {}\n"
          "[pool]\nfast_dir = \"{}\"\nfast_budget = \"{}\"\n"
          "slow_dir = \"{}\"\nslow_budget = \"{}\"\n"
          "[probe]\ncalibrate = {}\npassive = false\nrounds = 1\n{}{}{}",
          name, way_to_coordinator(node), listen, options_.units, work.string(), options_.drain_s,
          (fast_.path() / name).string(), options_.fast_budget, slow.string(), options_.slow_budget,
          options_.calibrate,
          options_.tls ? tls_section(folder(), name, options_.node_key, options_.revocation) : "",
          metrics_section(options_, *this, node), options_.node_more));
}

std::string Cluster::metrics_host(int node) const {
  return fmt::format("127.0.0.1:{}", metrics_ports_.at(static_cast<size_t>(node + 1)));
}

std::string Cluster::way_to_coordinator(int node) const {
  if (options_.way_to_coordinator) return options_.way_to_coordinator(node, folder() / "c.sock");
  return options_.tls ? tls_address() : address();
}

void Cluster::start_coordinator() {
  client_.disconnect();
  coordinator_ = Process(command(-1, {program("TIERPILOT_TEST_COORDINATOR"), "--config",
                                      (folder() / "coordinator.toml").string()}),
                         folder() / "coordinator.log");
  if (!eventually([&] { return !coordinator_.running() || client_.connect(); }) ||
      !coordinator_.running())
    throw std::runtime_error("the coordinator did not start:\n" + logs());
  // As tierpilot's group is in an installation.
  if (options_.node_user) (void)!chown((folder() / "c.sock").c_str(), -1, *options_.node_user);
}

void Cluster::start_node(int node) {
  this->node(node) = Process(command(node, {program("TIERPILOT_TEST_DAEMON"), "--config",
                                            (folder() / (node_name(node) + ".toml")).string()}),
                             folder() / (node_name(node) + ".log"));
}

bool Cluster::nodes_are_up(int count) {
  const auto nodes = client_.nodes();
  if (!nodes) return false;
  int up = 0;
  for (const auto& node : *nodes) up += node.at("state") == "up";
  return up == count;
}

std::string Cluster::address() const {
  return "unix:" + (folder() / "c.sock").string();
}

std::string Cluster::tls_address() const {
  return "tls:" + tls_host(-1);
}

std::string Cluster::host(int process) const {
  return options_.hosts.empty() ? "127.0.0.1" : options_.hosts.at(static_cast<size_t>(process + 1));
}

std::string Cluster::tls_host(int process) const {
  return fmt::format("{}:{}", host(process), ports_.at(static_cast<size_t>(process + 1)));
}

Argv Cluster::command(int process, const Argv& own) const {
  Argv words = options_.prefix ? options_.prefix(process) : Argv{};
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

Argv Cluster::tls_arguments() const {
  return {"--connect",  tls_address(),
          "--tls-ca",   (folder() / "cluster-ca.pem").string(),
          "--tls-cert", (folder() / "operator.pem").string(),
          "--tls-key",  (folder() / "operator.key").string()};
}

fs::path Cluster::data_socket(int node) const {
  return folder() / node_name(node) / "data.sock";
}

fs::path Cluster::state_dir() const {
  return options_.state_dir.empty() ? folder() / "state" : options_.state_dir;
}

std::string Cluster::node_name(int node) {
  return fmt::format("n{}", node + 1);
}

std::string Cluster::logs() const {
  std::string text;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder(), ignored)) {
    if (entry.path().extension() != ".log") continue;
    const auto log = read_text(entry.path());
    text += fmt::format("--- the end of {}:\n{}\n", entry.path().filename().string(),
                        log.substr(log.size() - std::min(log.size(), kShownLogBytes)));
  }
  return text;
}

}  // namespace tierpilot::test
