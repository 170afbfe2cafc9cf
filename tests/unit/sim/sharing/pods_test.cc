#include "policies/sim/sharing/pods.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tierpilot::sharing {
namespace {

class Pods : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / ("sharing-" + name);
    std::ofstream(path) << text;
    return path;
  }
  Result<PodTrace> read(const std::string& pods, const std::string& nodes) {
    return read_pods(file("pods.csv", pods), file("nodes.csv", nodes));
  }
};

constexpr const char* kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,2,T4\nb,4000,512,0,\n";

TEST_F(Pods, ListsInTheWrongOrderAreRefused) {
  const std::string pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\np,1000,64,1,300,BE\n";
  ASSERT_TRUE(read(pods, kNodes));
  for (const auto& [first, second] :
       {std::pair(std::string(kNodes), pods), std::pair(std::string(kNodes), std::string(kNodes)),
        std::pair(pods, pods)}) {
    const auto trace = read(first, second);
    ASSERT_FALSE(trace);
    EXPECT_NE(trace.error().message.find("wrong order"), std::string::npos)
        << trace.error().message;
  }
}

TEST_F(Pods, ReadsSharesModelsAndClasses) {
  const auto trace = read(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,"
      "scheduled_time\n"
      "p,1000,64,1,300,V100|T4,BE,5,30,10\nq,1000,64,2,1000,A10,LS,6,,\nr,1000,64,0,0,,LS,7,8,7\n",
      kNodes);
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->pods.size(), 3U);
  const auto& [p, q, r] = std::tie(trace->pods[0], trace->pods[1], trace->pods[2]);
  EXPECT_EQ(p.request.share.milli, 300U);
  EXPECT_EQ(p.request.models, 1U);
  EXPECT_EQ(p.job_class, JobClass::kBestEffort);
  EXPECT_EQ(p.run_s, 20);
  EXPECT_EQ(q.request.units, 2U);
  EXPECT_EQ(q.request.models, 0U);  // no node has it
  EXPECT_EQ(q.job_class, JobClass::kLatencySensitive);
  EXPECT_EQ(r.request.units, 0U);
  EXPECT_EQ(trace->nodes[0].units.size(), 2U);
  EXPECT_EQ(trace->nodes[1].units.size(), 0U);
}

TEST_F(Pods, ColumnsThatAreOfNoUseMayBeMissing) {
  const auto trace = read("num_gpu,memory_mib,cpu_milli\n1,64,1000\n", kNodes);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->pods[0].request.share.milli, kWholeUnit);
}

TEST_F(Pods, SkipsAndCountsWhatIsNoPod) {
  const auto trace = read(
      "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,64,1,500\n-5,64,1,500\n1000,64,1,1001\n"
      "1000,64,65,1000\n1000,nan,1,500\n1000,64,1.5,500\n1e300,1,1,1\n",
      kNodes);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->pods.size(), 1U);
  uint64_t skipped = 0;
  for (const auto& [_, count] : trace->skipped) skipped += count;
  EXPECT_EQ(skipped, 6U);
  EXPECT_NE(trace->first_skipped.find(":3"), std::string::npos) << trace->first_skipped;
}

TEST_F(Pods, SkipsAndCountsWhatIsNoNode) {
  const auto trace = read("cpu_milli,memory_mib,num_gpu\n1000,64,1\n",
                          "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,2,T4\nb,8000,,2,T4\n"
                          "c,4000,512,,\nd,8000,1024,1.5,T4\ne,8000,1024,-1,T4\n");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->nodes.size(), 2U);
  EXPECT_TRUE(trace->nodes[1].units.empty()) << "no GPU is told: it is of cores alone";
  uint64_t skipped = 0;
  for (const auto& [reason, count] : trace->skipped) {
    EXPECT_TRUE(reason.starts_with("a node: ")) << reason;
    skipped += count;
  }
  EXPECT_EQ(skipped, 3U);
  EXPECT_NE(trace->first_skipped.find("nodes.csv:3"), std::string::npos) << trace->first_skipped;
  const auto none = read("cpu_milli,memory_mib,num_gpu\n1,1,1\n",
                         "sn,cpu_milli,memory_mib,gpu,model\na,8000,,2,T4\n");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("nodes.csv:2"), std::string::npos) << none.error().message;
}

TEST_F(Pods, NamesOfModelsAreTrimmed) {
  const auto trace =
      read("cpu_milli,memory_mib,num_gpu,gpu_spec\n1000,64,1,T4 | G2\n1000,64,1, \n",
           "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,2,T4 \nb,8000,1024,2, G2\n"
           "c,8000,1024,2,T4\n");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->models, (std::vector<std::string>{"T4", "G2"}));
  EXPECT_EQ(trace->pods[0].request.models, 3U);
  EXPECT_EQ(trace->pods[1].request.models, kAnyModel);
}

TEST_F(Pods, RefusesWhatIsNoCluster) {
  const std::string pods = "cpu_milli,memory_mib,num_gpu\n1,1,1\n";
  EXPECT_FALSE(read(pods, "sn,cpu_milli,memory_mib,gpu,model\n"));
  EXPECT_FALSE(read(pods, "sn,cpu_milli,memory_mib,gpu,model\na,1,1,1e9,T4\n"));
  EXPECT_FALSE(read(pods, "sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n"));
  EXPECT_FALSE(read(pods, "something,else\n1,2\n"));
  EXPECT_FALSE(read("cpu_milli,memory_mib,num_gpu\n1,1,0\n", kNodes));
  std::string many = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int i = 0; i < 65; ++i) many += "n,1,1,1,M" + std::to_string(i) + "\n";
  EXPECT_FALSE(read(pods, many));
}

TEST_F(Pods, GeneratedListsAreTheSameForTheSameSeed) {
  const auto a = generate_pods(1, 5, 50), b = generate_pods(1, 5, 50), c = generate_pods(2, 5, 50);
  ASSERT_EQ(a.pods.size(), 50U);
  bool differs = false;
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(a.pods[i].request, b.pods[i].request);
    differs = differs || !(a.pods[i].request == c.pods[i].request);
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace tierpilot::sharing
