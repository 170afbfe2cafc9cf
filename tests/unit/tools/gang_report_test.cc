// What `quickstart jobs` makes of its runs.
#include "tools/demo/jobs/gang_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace tierpilot::demo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GangJob job(const std::string& name, double loss, double submitted_s, double finished_s) {
  GangJob job;
  job.name = name;
  job.ranks = 2;
  job.state = "succeeded";
  job.loss = loss;
  job.submitted_s = submitted_s;
  job.finished_s = finished_s;
  return job;
}

GangRun run(const std::string& name, std::vector<GangJob> jobs) {
  GangRun run;
  run.name = name;
  run.jobs = std::move(jobs);
  run.wall_s = 40;
  run.cluster_units = 5;
  run.busy_unit_s = 100;
  run.units = nlohmann::ordered_json::array();
  return run;
}

TEST(GangReport, SumsUpAPolicy) {
  auto first = job("a", 0.5, 100, 110), second = job("b", 0.25, 100, 130);
  first.restarts = 2;
  first.lost_unit_s = 3;
  second.restarts = 1;
  second.lost_unit_s = 4;
  const auto report = gang_report(run("undisturbed", {first, second}), {run("p", {first, second})});
  EXPECT_EQ(report["schema"], 1);
  const auto& row = report["policies"][0];
  EXPECT_EQ(row["name"], "p");
  EXPECT_EQ(row["jobs"], 2);
  EXPECT_EQ(row["failed"], 0);
  EXPECT_EQ(row["restarts"], 3);
  EXPECT_EQ(row["makespan_s"], 30);
  EXPECT_EQ(row["completion_s"]["mean"], 20);
  EXPECT_EQ(row["completion_s"]["p99"], 30);
  EXPECT_EQ(row["lost_unit_s"], 7);
  EXPECT_EQ(row["utilisation"], 0.5);
  EXPECT_EQ(report["jobs"][1]["undisturbed_loss"], 0.25);
  EXPECT_THAT(gang_faults(report), IsEmpty());
  std::ostringstream out;
  print_gang_report(out, report);
  EXPECT_THAT(out.str(), HasSubstr("LOST UNIT s"));
}

TEST(GangReport, ALossThatIsAnotherOneIsAFault) {
  const auto undisturbed = run("undisturbed", {job("a", 0.5, 0, 1), job("b", 0.5, 0, 1)});
  const auto report =
      gang_report(undisturbed, {run("p", {job("a", 0.504, 0, 1), job("b", 0.52, 0, 1)})});
  EXPECT_THAT(gang_faults(report), ElementsAre("p: b ended with loss 0.52, undisturbed 0.5"));
}

TEST(GangReport, SoIsAJobThatFailedOrTellsNoLoss) {
  auto failed = job("a", 0.5, 0, 1), silent = job("b", 0.5, 0, 1);
  failed.state = "failed";
  silent.loss.reset();
  const auto undisturbed = run("undisturbed", {job("a", 0.5, 0, 1), job("b", 0.5, 0, 1)});
  const auto report = gang_report(undisturbed, {run("p", {failed, silent})});
  EXPECT_THAT(gang_faults(report), ElementsAre("p: a failed", "p: b told no loss"));
  EXPECT_EQ(report["policies"][0]["failed"], 1);
  EXPECT_TRUE(report["jobs"][1]["loss"].is_null());
}

TEST(GangPlans, LeaveOneUnitFree) {
  std::set<std::string> names;
  uint32_t at_first = 0;
  for (const auto& plan : gang_plans(1, true)) {
    EXPECT_TRUE(plan.after.empty() || names.contains(plan.after));
    names.insert(plan.name);
    if (plan.after.empty()) at_first += plan.ranks;
  }
  EXPECT_EQ(at_first, 5u);
}

TEST(GangPlans, MixTheTrainersModelsAndTheScript) {
  std::set<std::string> models;
  for (const auto& plan : gang_plans(1, false)) models.insert(plan.model);
  EXPECT_THAT(models, ElementsAre("", "conv", "logistic", "mlp"));
}

}  // namespace
}  // namespace tierpilot::demo
