#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr int64_t kSecond = 1'000'000'000;
constexpr const char* kPhillyHeader = "timestamp,duration,num_gpus,gpu_time,cluster\n";

class Philly : public TraceTest {
 protected:
  Trace read(std::string_view text) {
    auto trace = read_philly(file(text), options_);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? std::move(*trace) : Trace{};
  }
  std::string error(std::string_view text) {
    auto trace = read_philly(file(text), options_);
    return trace ? "no error" : trace.error().message;
  }
};

TEST_F(Philly, ARowIsATask) {
  options_.units_per_gpu = 6;
  const auto trace = read(std::string(kPhillyHeader) +
                          "2017-09-04 10:30:41,582.0,8,4656.0,7f04ca\n"
                          "2017-09-04 10:30:11,60,1,60,6214e9\n");
  const auto& tasks = trace.workload.tasks;
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].arrival_ns, 0) << "by arrival, whatever the file's order";
  EXPECT_EQ(tasks[1].arrival_ns, 30 * kSecond);
  EXPECT_DOUBLE_EQ(seconds(tasks[1]), 582);
  EXPECT_EQ(tasks[1].gpu_milli, 8000u);
  EXPECT_EQ(tasks[1].units, 48u);
  EXPECT_EQ(trace.workload.users[tasks[0].user], "6214e9");
  EXPECT_EQ(trace.workload.users[tasks[1].user], "7f04ca");
  EXPECT_EQ(trace.summary.tasks, 2u);
  EXPECT_EQ(trace.summary.span_ns, 30 * kSecond);
  EXPECT_THAT(trace.summary.derived, ElementsAre(HasSubstr("6 for each GPU")));
}

TEST_F(Philly, OtherOrdersNamesAndMissingColumns) {
  const auto trace = read("gpu_time;gpu_num;submit_time\r\n120;2;100\r\n30;0.5;200\r\n");
  const auto& tasks = trace.workload.tasks;
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_DOUBLE_EQ(seconds(tasks[0]), 60) << "GPU time over GPUs";
  EXPECT_EQ(tasks[0].gpu_milli, 2000u);
  EXPECT_EQ(tasks[1].gpu_milli, 500u);
  EXPECT_EQ(tasks[1].arrival_ns, 100 * kSecond);
  EXPECT_THAT(trace.workload.users, ElementsAre("all"));
}

TEST_F(Philly, JobsWiderThanANodeCanBeGangs) {
  options_.max_gpus = 8;
  options_.wide_are_gangs = true;
  const auto trace = read(std::string(kPhillyHeader) + "0,60,20,0,a\n1,60,8,0,a\n2,60,16,0,a\n");
  const auto& workload = trace.workload;
  ASSERT_EQ(workload.tasks.size(), 6u);
  ASSERT_EQ(workload.gangs.size(), 2u);
  EXPECT_EQ(workload.gangs[0].ranks, 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(workload.tasks[rank].gang, 0u);
    EXPECT_EQ(workload.tasks[rank].gpu_milli, 7000u) << "ranks are alike, so one GPU is too many";
  }
  EXPECT_EQ(workload.tasks[3].gang, kNoGang);
  EXPECT_EQ(workload.gangs[1].first, 4u);
  EXPECT_EQ(workload.tasks[5].gpu_milli, 8000u);
  EXPECT_EQ(workload.jobs(), 3u);
}

TEST_F(Philly, JobsWithoutGpuAndWithCpus) {
  const auto trace = read("submit_time,duration,gpu_num,cpu_num,user\n0,5,0,12,u\n");
  ASSERT_EQ(trace.workload.tasks.size(), 1u);
  EXPECT_EQ(trace.workload.tasks[0].gpu_milli, 0u);
  EXPECT_EQ(trace.workload.tasks[0].units, 12u);
}

TEST_F(Philly, BadRowsAreSkippedAndCountedByReason) {
  const auto trace = read(std::string(kPhillyHeader) +
                          "10,5,1,5,a\n"
                          "11,-5,1,5,a\n"
                          "12,1e300,1,5,a\n"
                          "13,5,many,5,a\n"
                          "14,5,99999999999,5,a\n"
                          "soon,5,1,5,a\n"
                          "15,0,1,0,a\n"
                          "16\n" +
                          std::string("17,5\0,1,5,a\n", 12));
  EXPECT_EQ(trace.workload.tasks.size(), 1u);
  EXPECT_EQ(trace.summary.rows, 9u);
  EXPECT_THAT(trace.summary.skipped,
              ElementsAre(Pair("duration is not a number", 1), Pair("duration is out of range", 2),
                          Pair("it ran for 0 s", 1), Pair("num_gpus is not a number", 2),
                          Pair("num_gpus is out of range", 1), Pair("timestamp is not a time", 1)));
  EXPECT_THAT(trace.summary.first_skipped, HasSubstr(":3: column duration: '-5'"));
}

TEST_F(Philly, NoTaskAtAllIsAnErrorWithTheFirstReason) {
  EXPECT_THAT(error(std::string(kPhillyHeader) + "x,y,z\n"),
              HasSubstr(":2: column timestamp: 'x'"));
  EXPECT_THAT(error(kPhillyHeader), HasSubstr("none of its 0 rows"));
  EXPECT_THAT(error("a,b\n1,2\n"), HasSubstr("no column is called 'timestamp'"));
  EXPECT_THAT(error("timestamp,num_gpus\n1,2\n"), HasSubstr("no column is called 'duration'"));
}

TEST_F(Philly, APartOfTheTraceAtAnotherRate) {
  std::string text = kPhillyHeader;
  for (int i = 0; i < 10; ++i) text += std::to_string(1000 + 10 * i) + ",5,1,5,a\n";
  options_.from_ns = 20 * kSecond;
  options_.until_ns = 60 * kSecond;
  options_.rate = 2;
  const auto part = read(text);
  ASSERT_EQ(part.workload.tasks.size(), 4u);
  EXPECT_EQ(part.workload.tasks[0].arrival_ns, 0);
  EXPECT_EQ(part.workload.tasks[3].arrival_ns, 15 * kSecond);
  EXPECT_EQ(part.summary.span_ns, 90 * kSecond) << "of the whole trace";
  options_.max_tasks = 2;
  EXPECT_EQ(read(text).workload.tasks.size(), 2u);
  options_.from_ns = 200 * kSecond;
  EXPECT_THAT(error(text), HasSubstr("no task arrives in the part asked for"));
  options_.rate = 0;
  EXPECT_THAT(error(text), HasSubstr("rate"));
}

TEST_F(Philly, WideTasksAreSplitAndShareTheirData) {
  options_.max_gpus = 8;
  options_.datasets = DatasetModel{.shared_datasets = 0, .write = 1};
  const auto trace = read(std::string(kPhillyHeader) + "0,5,20,100,a\n0,5,8,40,a\n");
  const auto& workload = trace.workload;
  ASSERT_EQ(workload.tasks.size(), 4u);
  uint32_t gpus = 0, units = 0;
  for (int i = 0; i < 3; ++i) {
    gpus += workload.tasks[i].gpu_milli;
    units += workload.tasks[i].units;
    EXPECT_LE(workload.tasks[i].gpu_milli, 8000u);
    ASSERT_EQ(workload.tasks[i].use_count, workload.tasks[0].use_count);
    const auto uses = workload.uses_of(workload.tasks[i]);
    EXPECT_EQ(uses[0].dataset, workload.uses_of(workload.tasks[0])[0].dataset);
    EXPECT_EQ(uses[0].write, i == 0) << "one of them writes";
  }
  EXPECT_EQ(gpus, 20'000u);
  EXPECT_EQ(units, 80u);
  EXPECT_EQ(workload.tasks[3].gpu_milli, 8000u);
  EXPECT_THAT(trace.summary.derived, testing::Contains(HasSubstr("1 tasks wider than a node")));
}

}  // namespace
}  // namespace tierpilot::sim
