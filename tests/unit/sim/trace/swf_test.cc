#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class Swf : public TraceTest {
 protected:
  Trace read(std::string_view text) {
    auto trace = read_swf(file(text), options_);
    EXPECT_TRUE(trace) << trace.error().message;
    return trace ? std::move(*trace) : Trace{};
  }
};

TEST_F(Swf, EighteenFieldsMakeATask) {
  const auto trace = read(
      "; Version: 2\r\n;\r\n"
      "1 100 7 60 4 55 1024 8 120 2048 1 3 2 9 1 1 -1 -1\r\n"
      "\t2   90   -1 30.5 -1 -1 -1 8 120 2048 1 -1 2 9 1 1 1 10 ; a remark\n");
  const auto& tasks = trace.workload.tasks;
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_DOUBLE_EQ(seconds(tasks[0]), 30.5);
  EXPECT_EQ(tasks[0].units, 8u) << "asked for, as what was allocated is not known";
  EXPECT_EQ(tasks[0].memory_bytes, uint64_t{2048} * 1024 * 8);
  EXPECT_EQ(trace.workload.users[tasks[0].user], "group 2");
  EXPECT_EQ(tasks[1].arrival_ns, 10'000'000'000);
  EXPECT_EQ(tasks[1].units, 4u);
  EXPECT_EQ(tasks[1].memory_bytes, uint64_t{1024} * 1024 * 4);
  EXPECT_EQ(trace.workload.users[tasks[1].user], "user 3");
  EXPECT_THAT(trace.summary.derived, Contains(HasSubstr("1 jobs: the processors they asked for")));
  EXPECT_THAT(trace.summary.derived, Contains(HasSubstr("preceding")));
}

TEST_F(Swf, BadLinesAreSkippedAndCounted) {
  const std::string rest = " -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1";
  const auto trace = read("1 0 -1 60 4" + rest + "\n2 0 -1 60\n3 0 -1 60 4" + rest +
                          " 5\n4 0 -1 0 4" + rest + "\n5 -1 -1 60 4" + rest + "\n6 0 -1 60 -1" +
                          rest + "\n7 0 -1 1e14 4" + rest + "\n8 0 -1 x 4" + rest + "\n");
  EXPECT_EQ(trace.workload.tasks.size(), 1u);
  EXPECT_THAT(
      trace.summary.skipped,
      ElementsAre(Pair("allocated processors is not known, or 0", 1),
                  Pair("fewer than 18 fields", 1), Pair("more than 18 fields", 1),
                  Pair("run time is not a number", 1), Pair("run time is not known, or 0", 1),
                  Pair("run time is out of range", 1), Pair("submit time is out of range", 1)));
  EXPECT_THAT(trace.summary.first_skipped, HasSubstr(":2: field 5 (allocated processors)"));
}

TEST_F(Swf, OtherFilesAreRefused) {
  const auto csv = read_swf(file("timestamp,duration\n1,2\n"), options_);
  ASSERT_FALSE(csv);
  EXPECT_THAT(csv.error().message, HasSubstr("none of its 2 rows is a task"));
  EXPECT_THAT(csv.error().message, HasSubstr(":1: "));
}

TEST_F(Swf, WideJobsAreSplitEvenly) {
  options_.max_units = 16;
  const auto trace = read("1 0 -1 60 50 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n");
  std::vector<uint32_t> units;
  for (const auto& task : trace.workload.tasks) units.push_back(task.units);
  EXPECT_THAT(units, ElementsAre(13, 13, 12, 12));
}

}  // namespace
}  // namespace tierpilot::sim
