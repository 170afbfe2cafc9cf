#include "daemon/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>

#include <fstream>

namespace tierpilot {
namespace {

const MachineDefaults kMachine{"box", {0, 1, 2, 3}, 8ULL << 30};

Result<NodeConfig> read(std::string_view toml) {
  return read_config(*ConfigReader::parse(toml, "node.toml"), kMachine);
}

std::string error_of(std::string_view toml) {
  auto config = read(toml);
  return config ? "no error" : config.error().message;
}

TEST(NodeConfig, EmptyFileTakesTheMachine) {
  auto config = read("");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "box");
  EXPECT_EQ(config->cpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(config->units, 4u);
  EXPECT_EQ(config->memory_bytes, 8ULL << 30);
  EXPECT_EQ(config->data_advertise, config->data_listen);
  EXPECT_FALSE(config->pool.fast_node);
  EXPECT_EQ(config->pool.readers, 2);
}

TEST(NodeConfig, SaysAsWhomTasksRun) {
  EXPECT_FALSE(read("")->task_users.others());
  const auto pool = read("[tasks]\nrun_as = \"pool:70000-70009\"\n");
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_EQ(pool->task_users.kind, TaskUsersConfig::Kind::kPool);
  EXPECT_EQ(pool->task_users.first, 70000u);
  EXPECT_EQ(pool->task_users.last, 70009u);
  EXPECT_EQ(read("[tasks]\nrun_as = \"submitter\"\nlowest_uid = 500\n")->task_users.lowest, 500u);
  for (const char* wrong :
       {"root", "pool:", "pool:9-", "pool:70009-70000", "pool:70000-4294967295", "pool:70000-70002",
        "pool:0-70000", "pool:999-70000", "pool:70000-200000"})
    EXPECT_NE(error_of(std::string("[tasks]\nrun_as = \"") + wrong + "\"\n").find("tasks.run_as"),
              std::string::npos)
        << wrong;
  EXPECT_NE(error_of("[tasks]\nrun_as = \"submitter\"\n[sharing]\nmps = \"always\"\n")
                .find("sharing.mps"),
            std::string::npos);
}

TEST(NodeConfig, APoolHasNobodysAccount) {
  const passwd* nobody = ::getpwnam("nobody");
  if (!nobody || nobody->pw_uid < 1000) GTEST_SKIP() << "there is no account from 1000 on";
  const auto pool =
      fmt::format("[tasks]\nrun_as = \"pool:{}-{}\"\n", nobody->pw_uid - 100, nobody->pw_uid + 100);
  EXPECT_NE(error_of(pool).find(fmt::format("{} is 'nobody'", nobody->pw_uid)), std::string::npos)
      << error_of(pool);
}

TEST(NodeConfig, ReadsEverySection) {
  auto config = read(R"(
[node]
name = "n1"
coordinator = "tls:head:7000"
data_listen = "tls:0.0.0.0:7001"
data_advertise = "tls:n1:7001"
cpus = "3,1"
units = 4
[pool]
fast_budget = "64MiB"
slow_kind = "node"
fast_node = 0
slow_node = 1
readers = 7
[tls]
ca = "/etc/ca.pem"
certificate = "/etc/n1.pem"
key = "/etc/n1.key"
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->cpus, (std::vector<int>{1, 3}));
  EXPECT_EQ(config->units, 4u);
  EXPECT_EQ(config->pool.fast_budget_bytes, 64u << 20);
  EXPECT_EQ(config->pool.slow_node, 1);
  EXPECT_EQ(config->pool.readers, 7);
}

TEST(NodeConfig, NamesEveryWrongValueAtOnce) {
  const auto error = error_of(R"([node]
name = "a b"
coordinator = "head:7000"
cpus = "0,9"
unit = 3
[pool]
slow_kind = "tape"
fast_dir = "here"
readers = 0
)");
  for (const char* part :
       {"node.toml:2: node.name", "node.toml:3: node.coordinator", "node.toml:4: node.cpus: CPU 9",
        "node.toml:5: node.unit: unknown key", "node.toml:7: pool.slow_kind",
        "node.toml:8: pool.fast_dir", "node.toml:9: pool.readers"})
    EXPECT_NE(error.find(part), std::string::npos) << part << "\nis not in\n" << error;
}

TEST(NodeConfig, TiersForSwappingAreThoseThatAreThere) {
  const MachineDefaults machine{"box", {0, 1}, 8ULL << 30, {0, 1}};
  const auto with = [&](const std::string& tiers) {
    return read_config(*ConfigReader::parse("[swap]\ntiers = [" + tiers + "]\n", "node.toml"),
                       machine);
  };
  const auto none = read("");
  ASSERT_TRUE(none);
  EXPECT_EQ(swap_room_bytes(none->swap_tiers), 0u);
  const auto both = with("\"node1=16MiB\", \"dir:/var/tmp=4MiB\"");
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->swap_tiers.size(), 2u);
  EXPECT_EQ(both->swap_tiers[0].node, 1);
  EXPECT_EQ(both->swap_tiers[1].directory, "/var/tmp");
  EXPECT_EQ(swap_room_bytes(both->swap_tiers), 20u << 20);
  for (const auto& [tiers, words] : std::vector<std::pair<std::string, std::string>>{
           {"\"node2=1GiB\"", "no NUMA node 2 with memory: it has 0-1"},
           {"\"dir:/nonexistent/x=1GiB\"", "make the folder"},
           {"\"dir:/dev/shm=1MiB\"", "is memory"},
           {"\"dir:var=1MiB\"", "absolute"},
           {"\"dir:/etc/passwd=1MiB\"", "is not a folder"},
           {"\"dir:/var/tmp=63TiB\"", "smaller size"},
           {"\"dir:/var/a,b=1MiB\"", "','"},
           {"\"node1\"", "NAME=SIZE"},
           {"\"disk=1GiB\"", "dir:PATH"},
           {"\"node1=1.2MiB\"", "whole MiB"},
           {"\"node1=1MiB\", \"node1=2MiB\"", "named twice"}}) {
    const auto wrong = with(tiers);
    ASSERT_FALSE(wrong) << tiers;
    EXPECT_NE(wrong.error().message.find("node.toml:2: swap.tiers"), std::string::npos)
        << wrong.error().message;
    EXPECT_NE(wrong.error().message.find(words), std::string::npos) << wrong.error().message;
  }
}

// A directory of mode `mode`, and a link to it beside.
class SwapDirectory : public ::testing::Test {
 protected:
  SwapDirectory() : slow_("/var/tmp/tierpilot-test-XXXXXX") {
    if (!::mkdtemp(slow_.data())) ADD_FAILURE() << slow_ << " cannot be made";
    std::filesystem::create_directory(slow_ + "/is");
    std::filesystem::create_directory_symlink(slow_ + "/is", slow_ + "/link");
  }
  ~SwapDirectory() override { std::filesystem::remove_all(slow_); }
  // Empty: it is taken.
  static std::string complaint(const std::string& tiers) {
    const auto config =
        read_config(*ConfigReader::parse("[swap]\ntiers = [" + tiers + "]\n", "node.toml"),
                    MachineDefaults{"box", {0, 1}, 8ULL << 30, {0, 1}});
    return config ? std::string() : config.error().message;
  }
  std::string tier(const std::string& path) { return "\"dir:" + slow_ + path + "=1MiB\""; }

  std::string slow_;
};

TEST_F(SwapDirectory, OthersMustNotBeAbleToPutSomethingInThePlaceOfTheDaemonsFolder) {
  for (const mode_t mode : {0777, 0770, 0702}) {
    ASSERT_EQ(::chmod((slow_ + "/is").c_str(), mode), 0);
    EXPECT_NE(complaint(tier("/is")).find("chmod"), std::string::npos) << std::oct << mode;
  }
  for (const mode_t mode : {01777, 01770, 0755, 0700}) {
    ASSERT_EQ(::chmod((slow_ + "/is").c_str(), mode), 0);
    EXPECT_EQ(complaint(tier("/is")), "") << std::oct << mode;
  }
}

TEST_F(SwapDirectory, IsNamedOnceHoweverItIsSpelled) {
  for (const auto* same : {"/is/", "/link", "/is/../is"})
    EXPECT_NE(complaint(tier("/is") + ", " + tier(same)).find("named twice"), std::string::npos)
        << same;
  std::filesystem::create_directory(slow_ + "/other");
  EXPECT_EQ(complaint(tier("/is") + ", " + tier("/other")), "");
}

TEST(NodeConfig, TlsAddressNeedsCertificates) {
  EXPECT_NE(error_of("[node]\ncoordinator = \"tls:head:1\"").find("[tls]"), std::string::npos);
  EXPECT_NE(error_of("[tls]\nca = \"/a\"\nkey = \"/b\"").find("tls.certificate"),
            std::string::npos);
}

TEST(NodeConfig, AdvertisesWhatCanBeDialled) {
  const std::string tls = "[tls]\nca = \"/a\"\ncertificate = \"/b\"\nkey = \"/c\"\n";
  const std::string listen = "[node]\ndata_listen = \"tls:0.0.0.0:7421\"\n";
  EXPECT_NE(error_of(listen + tls).find("node.data_advertise"), std::string::npos);
  EXPECT_EQ(error_of(listen + "data_advertise = \"tls:n1:7421\"\n" + tls), "no error");
}

TEST(NodeConfig, SlowNodeContradictions) {
  EXPECT_NE(error_of("[pool]\nslow_kind = \"directory\"\nslow_node = 1").find("pool.slow_node"),
            std::string::npos);
  EXPECT_NE(error_of("[pool]\nfast_node = 1\nslow_node = 1").find("pool.slow_node"),
            std::string::npos);
}

TEST(NodeConfig, PlacementHasDefaults) {
  const auto placement = read("")->placement;
  EXPECT_TRUE(placement.enabled);
  EXPECT_EQ(placement.bytes_per_s, 256u << 20);
  EXPECT_EQ(placement.interval_ms, 1'000);
  EXPECT_FALSE(placement.tracker);
  EXPECT_TRUE(placement.rules.empty());
}

TEST(NodeConfig, WatchingHasAShareOfACpu) {
  EXPECT_DOUBLE_EQ(read("")->probe.passive_cpu_share, 0.005);
  EXPECT_DOUBLE_EQ(read("[probe]\npassive_cpu_share = 0\n")->probe.passive_cpu_share, 0);
  EXPECT_FALSE(read("[probe]\npassive_cpu_share = 2\n"));
}

TEST(NodeConfig, ReadsPlacementRules) {
  const auto config = read(R"([placement]
enabled = false
cap = "64MiB"
cpu_share = 0.1
interval_ms = 500
scan_interval_ms = 2000
tracker = "soft-dirty"
[[placement.rule]]
name = "postgres*"
cgroup = "/system.slice/db.service"
policy = "balance"
mode = "advise"
fast_budget = "2GiB"
group = "db"
[[placement.rule]]
task = "sort"
dataset = "genes"
policy = "static"
tier = "node3"
[[placement.rule]]
pid = 77
)");
  ASSERT_TRUE(config) << config.error().message;
  const auto& placement = config->placement;
  EXPECT_FALSE(placement.enabled);
  EXPECT_EQ(placement.bytes_per_s, 64u << 20);
  EXPECT_DOUBLE_EQ(placement.cpu_share, 0.1);
  EXPECT_EQ(placement.scan_interval_ms, 2'000);
  EXPECT_EQ(placement.tracker, TrackerKind::kSoftDirty);
  ASSERT_EQ(placement.rules.size(), 3u);
  EXPECT_EQ(placement.rules[0].match.name, "postgres*");
  EXPECT_EQ(placement.rules[0].match.cgroup, "/system.slice/db.service");
  EXPECT_EQ(placement.rules[0].group.policy, PagingPolicy::kBalance);
  EXPECT_EQ(placement.rules[0].group.name, "db");
  EXPECT_EQ(placement.rules[0].group.fast_budget_bytes, uint64_t{2} << 30);
  EXPECT_EQ(placement.rules[0].mode, PagingMode::kAdvise);
  EXPECT_EQ(placement.rules[1].group.policy, PagingPolicy::kStatic);
  EXPECT_EQ(placement.rules[1].tier, "node3");
  EXPECT_FALSE(placement.rules[1].mode) << "own tasks: enforce, others: observe";
  EXPECT_EQ(placement.rules[2].match.pid, 77);
  EXPECT_EQ(placement.rules[2].group.name, "rule 3");
}

TEST(NodeConfig, NamesEveryWrongPlacementValue) {
  const std::pair<const char*, const char*> wrong[] = {
      {"enabled = \"auto\"", "n.toml:2: placement.enabled: must be true or false"},
      {"cap = \"fast\"", "n.toml:2: placement.cap"},
      {"cap = -1", "n.toml:2: placement.cap"},
      {"cpu_share = 1.5", "n.toml:2: placement.cpu_share"},
      {"interval_ms = 1", "n.toml:2: placement.interval_ms"},
      {"scan_interval_ms = 0", "n.toml:2: placement.scan_interval_ms"},
      {"tracker = \"eyes\"", "n.toml:2: placement.tracker: tracker 'eyes'"},
      {"rule = 3", "n.toml:2: placement.rule: must be a list of tables"},
      {"[[placement.rule]]", "placement.rule[0].name: a rule needs a condition"},
      {"[[placement.rule]]\npid = 0", "n.toml:3: placement.rule[0].pid"},
      {"[[placement.rule]]\nname = 5", "n.toml:3: placement.rule[0].name"},
      {"[[placement.rule]]\nname = \"longer-than-kernel-names\"",
       "n.toml:3: placement.rule[0].name: is compared with the first 15"},
      {"[[placement.rule]]\nname = \"a\"\nmode = \"force\"",
       "n.toml:4: placement.rule[0].mode: mode 'force'"},
      {"[[placement.rule]]\nname = \"a\"\npolicy = \"hot\"",
       "n.toml:4: placement.rule[0].policy: policy 'hot'"},
      {"[[placement.rule]]\nname = \"a\"\nfast_budget = \"much\"",
       "n.toml:4: placement.rule[0].fast_budget"},
      {"[[placement.rule]]\nname = \"a\"\npolicy = \"static\"",
       "placement.rule[0].tier: is missing"},
      {"[[placement.rule]]\nname = \"a\"\ntier = \"fast\"",
       "n.toml:4: placement.rule[0].tier: is for policy"},
      {"[[placement.rule]]\nname = \"a\"\npolicy = \"static\"\ntier = \"far\"",
       "n.toml:5: placement.rule[0].tier: tier 'far'"},
      {"[[placement.rule]]\nname = \"a\"\ncolour = 1",
       "n.toml:4: placement.rule[0].colour: unknown key"},
      {"[[placement.rule]]\nname = \"a\"\ngroup = \"g\"\n[[placement.rule]]\nname = \"b\"\ngroup "
       "= \"g\"\nfast_budget = 5",
       "n.toml:7: placement.rule[1].group: 'g' has another policy"}};
  for (const auto& [toml, complaint] : wrong) {
    const auto config =
        read_config(*ConfigReader::parse(std::string("[placement]\n") + toml, "n.toml"), kMachine);
    ASSERT_FALSE(config) << toml;
    EXPECT_NE(config.error().message.find(complaint), std::string::npos) << complaint << "\n"
                                                                         << config.error().message;
  }
}

TEST(NodeConfig, MissingFileIsNamed) {
  auto config = load_config("/does/not/exist.toml", kMachine);
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("/does/not/exist.toml"), std::string::npos);
}

// The example shows defaults as comments: uncommented, each must still be a key of that section.
TEST(NodeConfig, ExampleIsValidAlsoUncommented) {
  const std::string path = SOURCE_ROOT "/systemd/tierpilotd.toml";
  auto config = load_config(path, kMachine);
  ASSERT_TRUE(config) << config.error().message;
  std::ifstream file(path);
  std::string text, line;
  while (std::getline(file, line)) {
    const bool key = line.size() > 1 && line[0] == '#' && std::islower(line[1]) &&
                     line.find(" = ") != std::string::npos;
    text += (key ? line.substr(1) : line) + "\n";
  }
  config = read(text);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "node-1");
  EXPECT_EQ(config->tls.key, "/etc/tierpilot/node.key");
}

TEST(NodeConfig, ThisMachineHasDefaults) {
  auto machine = machine_defaults(Sysroot("/"));
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_FALSE(machine->cpus.empty());
  EXPECT_GT(machine->memory_bytes, 1u << 20);
}

}  // namespace
}  // namespace tierpilot
