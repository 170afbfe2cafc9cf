#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,524288,0,\nn2,8000,1,1,"
    "T4\n";
constexpr const char* kPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

class Openb : public TraceTest {
 protected:
  Result<OpenbTrace> read(std::string_view pods, std::string_view nodes = kNodes) {
    return read_openb(file(pods, "pods"), file(nodes, "nodes"), options_);
  }
};

TEST_F(Openb, ANodeWithMoreGpusThanCanBeSimulatedIsAnError) {
  const auto trace = read(std::string(kPods) + "a,1000,1024,0,0,,LS,Running,10,100,40\n",
                          "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,65,P100\n");
  ASSERT_FALSE(trace);
  EXPECT_THAT(trace.error().message, HasSubstr("gpu"));
}

TEST_F(Openb, PodsAndNodes) {
  const auto trace = read(std::string(kPods) +
                          "a,12500,1024,1,460,,LS,Running,10,100,40\n"
                          "b,0,0,4,1000,A10|T4,BE,Failed,20,30,20\n"
                          "c,100,1,0,0,,BE,Failed,20,30,20\n");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->nodes.size(), 3u);
  EXPECT_EQ(trace->nodes[0].name, "n0");
  EXPECT_EQ(trace->nodes[0].cpu_milli, 64000u);
  EXPECT_EQ(trace->nodes[0].memory_bytes, uint64_t{256} << 30);
  EXPECT_EQ(trace->nodes[0].gpus, 2u);
  EXPECT_EQ(trace->nodes[0].gpu_model, "P100");
  EXPECT_EQ(trace->nodes[1].gpu_model, "");
  const auto& workload = trace->trace.workload;
  ASSERT_EQ(workload.tasks.size(), 3u);
  const auto& [a, b, c] = std::tie(workload.tasks[0], workload.tasks[1], workload.tasks[2]);
  EXPECT_DOUBLE_EQ(seconds(a), 60) << "from scheduled to deleted";
  EXPECT_EQ(a.units, 13u);
  EXPECT_EQ(a.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(a.gpu_milli, 460u);
  EXPECT_EQ(a.gpu_type, kAnyGpuType);
  EXPECT_EQ(workload.users[a.user], "LS");
  EXPECT_EQ(b.arrival_ns, 10'000'000'000);
  EXPECT_EQ(b.gpu_milli, 4000u);
  EXPECT_EQ(workload.gpu_types[b.gpu_type], "T4") << "the first that a node has";
  EXPECT_EQ(c.gpu_milli, 0u);
  EXPECT_THAT(trace->trace.summary.derived, Contains(HasSubstr("GPU type of 1 pods")));
}

TEST_F(Openb, AWholeGpuNeedsNoShare) {
  const auto trace = read(std::string(kPods) +
                          "a,1000,1024,1,0,,LS,Running,10,100,40\n"
                          "b,1000,1024,1,,,LS,Running,10,100,40\n"
                          "c,1000,1024,2,0,,LS,Running,10,100,40\n");
  ASSERT_TRUE(trace) << trace.error().message;
  const auto& tasks = trace->trace.workload.tasks;
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].gpu_milli, 1000u);
  EXPECT_EQ(tasks[1].gpu_milli, 1000u);
  EXPECT_EQ(tasks[2].gpu_milli, 2000u);
}

TEST_F(Openb, PodsThatNeverRanAreSkipped) {
  const auto trace = read(std::string(kPods) +
                          "a,1,1,1,1,,LS,Pending,10,100,\n"
                          "b,1,1,1,1,,LS,Running,10,30,40\n"
                          "c,1,1,1,1,,LS,Running,10,30,20\n");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_THAT(trace->trace.summary.skipped,
              ElementsAre(Pair("never scheduled", 1), Pair("no run time", 1)));
}

TEST_F(Openb, AWrongNodeIsAnError) {
  const std::string pods = std::string(kPods) + "a,1,1,1,1,,LS,Running,10,100,20\n";
  const auto negative = read(pods, "sn,cpu_milli,memory_mib,gpu\nn0,-1,1,1\n");
  ASSERT_FALSE(negative);
  EXPECT_THAT(negative.error().message, HasSubstr("nodes:2: column cpu_milli: '-1'"));
  EXPECT_THAT(read(pods, "sn,cpu_milli,memory_mib,gpu\n").error().message, HasSubstr("no nodes"));
  EXPECT_THAT(read(pods, "a,b\n1,2\n").error().message, HasSubstr("no column is called"));
}

}  // namespace
}  // namespace tierpilot::sim
