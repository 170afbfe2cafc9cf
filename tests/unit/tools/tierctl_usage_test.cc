// What tierctl says without a cluster: mistakes, and where nobody answers.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "tests/unit/tools/ran_tierctl.h"

namespace tierpilot {
namespace {

using nlohmann::json;

TEST(TierctlUnreachable, SaysWhereWhyAndWhatToDo) {
  const auto ran = run({"--connect", "unix:/nonexistent/c.sock", "node", "list"});
  EXPECT_EQ(ran.code, kExitNotFound);
  for (const char* part :
       {"unix:/nonexistent/c.sock", "No such file", "tierpilot-coordinator", "--connect"})
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  const auto as_json = run({"--connect", "unix:/nonexistent/c.sock", "node", "list", "-j"});
  EXPECT_EQ(parse_json<json>(as_json.err)["error"]["code"], "unreachable");
}

TEST(TierctlUnreachable, BadAddressesAndHalfTlsAreRefused) {
  EXPECT_EQ(run({"--connect", "tcp:host:1", "status"}).code, kExitFailed);
  const auto half = run({"--connect", "tls:localhost:1", "--tls-ca", "x", "status"});
  EXPECT_NE(half.err.find("--tls-key"), std::string::npos) << half.err;
}

TEST(TierctlUsage, MistakesAreExitTwo) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {},
           {"nodes"},
           {"node"},
           {"node", "show"},
           {"dataset", "add", "x"},
           {"dataset", "add", "x", "--zero", "1", "--random", "2"},
           {"dataset", "add", "x", "--zero", "lots"},
           {"dataset", "add", "x", "--file", ""},
           {"dataset", "add", "x", "--zero", "1", "--request-id", ""},
           {"task", "submit"},
           {"task", "submit", "--file", "x", "--", "true"},
           {"task", "submit", "--file", "x", "--node", "n1"},
           {"task", "submit", "--file", "x", "--ranks", "2"},
           {"task", "submit", "--file", "x", "--share", "auto"},
           {"task", "submit", "--units", "0", "--", "true"},
           {"task", "submit", "--request-id", "", "--", "true"},
           {"task", "submit", "--env", "A", "--", "true"},
           {"task", "submit", "--time-limit", "soon", "--", "true"},
           {"task", "list", "--state", "gone"},
           {"task", "wait"},
           {"task", "show", "x"},
           {"policy", "mode", "dqn", "loud"},
           {"policy", "mode", "dqn"},
           {"policy", "rollback", "dqn", "0"},
           {"policy", "rollback", "dqn", "-1"},
           {"dataset", "add", "x", "--random", "1", "--seed", "-1"},
           {"dataset", "add", "x", "--random", "1", "--seed", "18446744073709551616"},
           {"policy", "rollback"},
           {"status", "--timeout", "x"}}) {
    const auto ran = run(words);
    EXPECT_EQ(ran.code, kExitUsage) << (words.empty() ? "" : words.back()) << ": " << ran.err;
    EXPECT_EQ(ran.err.rfind("error: tierctl", 0), 0u) << ran.err;
  }
}

TEST(TierctlConfig, SaysWhatIsWrongWithTheFile) {
  EXPECT_EQ(run({"config", "check", "/nonexistent.toml"}).code, kExitNotFound);
  const std::string path = testing::TempDir() + "tierctl-config.toml";
  std::ofstream(path) << "[nodes]\n";
  EXPECT_NE(run({"config", "check", path}).err.find("no section of a node"), std::string::npos);
  std::ofstream(path) << "[node]\nname = \n";
  EXPECT_NE(run({"config", "check", path}).err.find(path + ":2:"), std::string::npos);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tierpilot
