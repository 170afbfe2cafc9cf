// tierctl simulate --curves: training jobs on a cluster that is only described.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

TEST(LabTraining, SimulatesTrainingJobsOnAnyClusterByRecordedCurves) {
  const TempFolder folder("/tmp");
  const auto cluster = (folder.path() / "cluster.toml").string();
  std::ofstream(cluster) << "name = \"mine\"\n[[nodes]]\ncount = 3\nunits = 4\n";
  std::string rows = "iteration,loss,seconds\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{},{}\n", i, 1.0 / (i + 1), 2 * i);
  std::filesystem::create_directory(folder.path() / "curves");
  const auto curves = folder.path() / "curves";
  std::ofstream(curves / "one.csv") << rows;
  const Argv words{"-j", "simulate", "--curves", curves,    "--cluster", cluster,    "--jobs",
                   "12", "--gap-s",  "10",       "--seeds", "2",         "--policy", "quality"};
  const auto result = tierctl_at("unix:/nowhere/c.sock", words);
  ASSERT_EQ(result.code, 0) << result.err;
  const auto answer = parse(result.out);
  ASSERT_EQ(answer["cells"].size(), 3u) << "fair and the clairvoyant are beside it";
  for (const auto& row : answer["cells"]) {
    EXPECT_EQ(row["cell"], "mine");
    EXPECT_GT(row["mean_normalised_loss"].get<double>(), 0);
  }
  const auto wrong = [&](Argv more) {
    Argv line{"simulate", "--curves", curves};
    line.insert(line.end(), more.begin(), more.end());
    return tierctl_at("unix:/nowhere/c.sock", line);
  };
  EXPECT_NE(wrong({"--workload", cluster}).code, 0);
  EXPECT_NE(wrong({"--work-s", "9:1"}).err.find("LEAST:MOST"), std::string::npos);
  EXPECT_NE(wrong({"--work-s", "1:nan"}).code, 0);
  EXPECT_NE(wrong({"--policy", "none"}).code, 0);
  EXPECT_NE(wrong({"--cluster", "/nowhere.toml"}).err.find("/nowhere.toml"), std::string::npos);
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock", {"simulate", "--cluster", cluster}).code, 2);
}

}  // namespace
}  // namespace tierpilot::test
