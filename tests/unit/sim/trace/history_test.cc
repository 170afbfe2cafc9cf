#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kHistoryHeader = R"({"schema":"tierpilot-history","version":1})"
                                       "\n";

class History : public TraceTest {
 protected:
  Result<Trace> read(std::string_view text) { return read_history(file(text), options_); }
};

TEST_F(History, TasksAndTheirDatasets) {
  const auto trace = read(std::string(kHistoryHeader) + R"(
{"dataset":"genes","bytes":4096}
{"task":2,"state":"succeeded","user":"eve","submitted_ms":1700000001500,"wall_ns":2500000000,"units":3,"memory_bytes":64,"uses":[{"dataset":"genes","write":true}]}
{"task":1,"state":"failed","user":"bob","submitted_ms":1700000000000,"started_ms":1700000001000,"finished_ms":1700000004000,"wall_ns":null,"units":1,"uses":[]}
)");
  ASSERT_TRUE(trace) << trace.error().message;
  const auto& workload = trace->workload;
  ASSERT_EQ(workload.tasks.size(), 2u);
  EXPECT_DOUBLE_EQ(seconds(workload.tasks[0]), 3) << "a failed task was work, too";
  EXPECT_EQ(workload.tasks[1].arrival_ns, 1'500'000'000);
  EXPECT_DOUBLE_EQ(seconds(workload.tasks[1]), 2.5);
  EXPECT_EQ(workload.tasks[1].units, 3u);
  EXPECT_EQ(workload.tasks[1].memory_bytes, 64u);
  EXPECT_EQ(workload.users[workload.tasks[1].user], "eve");
  ASSERT_EQ(workload.tasks[1].use_count, 1u);
  const auto use = workload.uses_of(workload.tasks[1])[0];
  EXPECT_EQ(workload.datasets[use.dataset].bytes, 4096u);
  EXPECT_TRUE(use.write);
}

TEST_F(History, AGangCountsAsAWholeAndItsRanksAreMadeOfIt) {
  const auto trace = read(std::string(kHistoryHeader) + R"(
{"dataset":"a","bytes":100}
{"task":1,"submitted_ms":1000,"started_ms":2000,"finished_ms":9000,"wall_ns":null,"units":2,"gang":{"ranks":3,"units_per_rank":1,"engine":"gpu","restarts":0},"uses":[{"dataset":"a","write":true}]}
{"task":2,"submitted_ms":1000,"wall_ns":7000000000,"units":2,"rank_of":1,"rank":0}
{"task":3,"submitted_ms":1000,"wall_ns":7000000000,"units":2,"rank_of":1,"rank":1}
{"task":4,"submitted_ms":1000,"wall_ns":7000000000,"units":2,"rank_of":1,"rank":2}
{"task":5,"submitted_ms":1500,"wall_ns":1000000000,"units":1,"gang":null}
{"task":6,"submitted_ms":1500,"wall_ns":1000000000,"gang":{"ranks":1e9}}
{"task":7,"submitted_ms":1500,"wall_ns":1000000000,"gang":5}
)");
  ASSERT_TRUE(trace) << trace.error().message;
  const auto& workload = trace->workload;
  ASSERT_EQ(workload.tasks.size(), 4u) << "three ranks and a task";
  ASSERT_EQ(workload.gangs.size(), 1u);
  EXPECT_EQ(workload.gangs[0].first, 0u);
  EXPECT_EQ(workload.gangs[0].ranks, 3u);
  EXPECT_EQ(workload.tasks[3].gang, kNoGang);
  for (int rank = 0; rank < 3; ++rank) {
    const Task& task = workload.tasks[rank];
    EXPECT_EQ(task.gang, 0u);
    EXPECT_EQ(task.units, 2u);
    EXPECT_EQ(task.gpu_milli, 1000u);
    EXPECT_DOUBLE_EQ(seconds(task), 7);
    ASSERT_EQ(task.use_count, 1u);
    EXPECT_EQ(workload.uses_of(task)[0].write, rank == 0);
  }
  EXPECT_THAT(trace->summary.skipped, Contains(Pair(HasSubstr("rank of a gang"), 3u)));
  EXPECT_THAT(trace->summary.skipped, Contains(Pair(HasSubstr("ranks is out of range"), 1u)));
  EXPECT_THAT(trace->summary.skipped, Contains(Pair(HasSubstr("gang is no object"), 1u)));
}

TEST_F(History, ARemovedDatasetIsAsLargeAsWhatWasServed) {
  const auto trace = read(std::string(kHistoryHeader) + R"(
{"dataset":"a","bytes":100}
{"dataset":"gone","bytes":null,"bytes_unavailable":"removed"}
{"task":1,"submitted_ms":1,"wall_ns":1000,"served_bytes":350,"uses":[{"dataset":"a"},{"dataset":"gone"}]}
{"task":2,"submitted_ms":2,"wall_ns":1000,"served_bytes":0,"uses":[{"dataset":"gone"},{"dataset":"b"}]}
)");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->workload.datasets.size(), 2u);
  EXPECT_EQ(trace->workload.datasets[1].bytes, 250u);
  EXPECT_EQ(trace->workload.tasks[1].use_count, 1u);
  EXPECT_THAT(trace->summary.derived, Contains(HasSubstr("1 uses of datasets of unknown size")));
}

TEST_F(History, UsesThatAreNoneAreSkipped) {
  const auto trace = read(std::string(kHistoryHeader) + R"(
{"dataset":"a","bytes":100}
{"task":1,"submitted_ms":1,"wall_ns":1000,"uses":"a"}
{"task":2,"submitted_ms":1,"wall_ns":1000,"uses":[{"dataset":5}]}
{"task":3,"submitted_ms":1,"wall_ns":1000,"uses":["a"]}
{"task":4,"submitted_ms":1,"wall_ns":1000,"uses":null}
{"task":5,"submitted_ms":1,"wall_ns":1000,"uses":[{"dataset":"a"}]}
)");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->workload.tasks.size(), 2u);
  EXPECT_THAT(trace->summary.skipped, ElementsAre(Pair("uses are no list of datasets", 3)));
}

TEST_F(History, WhatDidNotRunIsSkipped) {
  const auto trace = read(std::string(kHistoryHeader) + R"(
{"task":1,"submitted_ms":1,"wall_ns":1000}
{"task":2,"state":"queued","submitted_ms":1,"started_ms":null,"finished_ms":null}
{"task":3,"submitted_ms":-5,"wall_ns":1000}
{"task":4,"submitted_ms":"soon","wall_ns":1000}
{"task":5,"submitted_ms":1,"wall_ns":1e300}
{"task":6,"submitted_ms":1,"wall_ns":1000,"units":1e30}
[1,2]
{"something":"else"}
{"task":7,"submitted_ms":1,"wall_ns":
)");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->workload.tasks.size(), 1u);
  EXPECT_THAT(trace->summary.skipped,
              ElementsAre(Pair("it did not run to an end", 1), Pair("neither task nor dataset", 1),
                          Pair("not JSON", 2), Pair("submitted_ms is out of range", 2),
                          Pair("units is out of range", 1), Pair("wall_ns is out of range", 1)));
}

TEST_F(History, OtherFilesAndVersionsAreRefused) {
  EXPECT_THAT(read("a,b\n1,2\n").error().message, HasSubstr("this is no history"));
  EXPECT_THAT(read(R"({"schema":"tierpilot-history","version":2})").error().message,
              HasSubstr("another version"));
  EXPECT_THAT(read(kHistoryHeader).error().message, HasSubstr("none of its 0 rows"));
}

TEST_F(History, DeepNestingIsNotACrash) {
  const auto deep = std::string(400'000, '[') + std::string(400'000, ']');
  const auto trace = read(kHistoryHeader + std::string(500'000, '[') + "\n" +
                          R"({"task":1,"submitted_ms":1,"wall_ns":1000,"uses":)" + deep + "}\n" +
                          R"({"task":2,"submitted_ms":)" + deep + R"(,"wall_ns":1000})" + "\n" +
                          R"({"task":3,"submitted_ms":1,"wall_ns":1000})" + "\n");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->summary.skipped.at("not JSON"), 1u);
  EXPECT_EQ(trace->workload.tasks.size(), 1u);
}

}  // namespace
}  // namespace tierpilot::sim
