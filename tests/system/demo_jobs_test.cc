// `quickstart jobs` once all is built: real training that loses a unit again and again, and ends
// where it would have ended.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

TEST(DemoJobs, GoOnFromTheirCheckpointsAndEndWithTheLossOfAnUndisturbedRun) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  if (std::system("/usr/bin/python3 -c 'import torch.distributed' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3-torch is not installed";
  const TempFolder folder("/var/tmp");
  const std::filesystem::path source = std::getenv("TIERPILOT_TEST_SOURCE");
  const auto file = folder.path() / "shown.json";
  const auto outcome = run_command(
      {"/usr/bin/env", "TMPDIR=" + folder.path().string(), program("TIERPILOT_TEST_DEMO_JOBS"),
       "--policies", "least-loaded", "--script", (source / "tools/demo/jobs/train.py").string(),
       "--python-path", (source / "python").string(), "--fake-driver",
       program("TIERPILOT_TEST_FAKE_NVML"), "--json", file.string()},
      {}, std::chrono::seconds(280));
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const auto json = parse_json<Json>(read_text(file));
  ASSERT_EQ(json["policies"].size(), 1u);
  const auto& policy = json["policies"][0];
  EXPECT_EQ(policy["failed"], 0);
  EXPECT_GT(policy["failures_made"], 0);
  EXPECT_GT(policy["restarts"], 0);
  EXPECT_GT(policy["lost_unit_s"], 0);
  EXPECT_GT(policy["xids"], 0);
  int failures = 0, of_gpus = 0;
  for (const auto& unit : json["units"]) {
    failures += unit["failures"].get<int>();
    if (unit["engine"] == "gpu") of_gpus += unit["failures"].get<int>();
  }
  EXPECT_GT(failures, of_gpus);
  EXPECT_GT(of_gpus, 0);
  for (const auto& job : json["jobs"]) {
    const double loss = job["loss"], undisturbed = job["undisturbed_loss"];
    EXPECT_LE(std::abs(loss - undisturbed), 0.01 * undisturbed) << job;
    EXPECT_GT(job["checkpoints"], 0) << job;
    EXPECT_GT(job["checkpoint_stall_ms"], 0) << job;
  }
}

}  // namespace
}  // namespace tierpilot::test
