// Files that went through a bad disk, or that somebody made to do harm: every reader answers, with
// a sound workload or an error, and no more.
#include <functional>
#include <random>

#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

constexpr int kRounds = 200;

constexpr const char* kPhilly =
    "timestamp,duration,num_gpus,gpu_time,cluster\n2017-09-04 10:30:41,582.0,8,4656.0,7f04ca\n"
    "\"2017-09-04 10:30:11\",60,1,60,6214e9\n1504521041,5e3,0.5,,x\n";
constexpr const char* kGoodPods =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\na,12500,1024,1,460,,LS,Running,10,100,40\n"
    "b,1,0,4,1000,A10|T4,BE,Failed,20,30,20\n";
constexpr const char* kGoodNodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n";
constexpr const char* kSwf =
    "; Version: 2\n1 100 7 60 4 55 1024 8 120 2048 1 3 2 9 1 1 -1 -1\n"
    "2 90 -1 30.5 -1 -1 -1 8 120 2048 1 -1 2 9 1 1 1 10\n";
constexpr const char* kHistory =
    R"({"schema":"tierpilot-history","version":1}
{"dataset":"a","bytes":4096}
{"task":1,"user":"eve","submitted_ms":15,"wall_ns":25000,"units":3,"uses":[{"dataset":"a","write":true},{"dataset":"b"}],"served_bytes":5000}
{"task":2,"state":"failed","user":"bob","submitted_ms":17,"started_ms":20,"finished_ms":30}
)";

class Hostile : public TraceTest {
 protected:
  // Some bytes changed, cut out, doubled, or put in from what tends to hurt.
  std::string harm(std::string text) {
    static constexpr std::string_view kPieces[] = {"\"",
                                                   "\n",
                                                   "\r",
                                                   ",",
                                                   std::string_view("\0", 1),
                                                   "-",
                                                   "9999999999999999999",
                                                   "1e308",
                                                   "nan",
                                                   "\xff\xfe",
                                                   "{",
                                                   "[[[[[[",
                                                   "null",
                                                   ";",
                                                   "\t",
                                                   "0",
                                                   "-1",
                                                   "4294967296",
                                                   "|"};
    const auto draw = [this](size_t below) { return random_() % std::max<size_t>(below, 1); };
    for (size_t i = 1 + draw(4); i > 0 && !text.empty(); --i) {
      const size_t at = draw(text.size());
      switch (draw(5)) {
        case 0:
          text[at] = static_cast<char>(draw(256));
          break;
        case 1:
          text.erase(at, draw(12));
          break;
        case 2:
          text.insert(at, text.substr(draw(text.size()), draw(60)));
          break;
        case 3:
          text.resize(at);
          break;
        default:
          text.insert(at, kPieces[draw(std::size(kPieces))]);
      }
    }
    return text;
  }

  void expect_sound(const Result<Trace>& trace) {
    if (!trace) {
      EXPECT_NE(trace.error().message, "");
      return;
    }
    const auto& workload = trace->workload;
    ASSERT_FALSE(workload.tasks.empty());
    for (const auto& task : workload.tasks) {
      ASSERT_GE(task.arrival_ns, 0);
      ASSERT_GT(task.operations, 0);
      ASSERT_LE(task.operations, 1e18);
      ASSERT_GE(task.units, 1u);
      ASSERT_LT(task.user, workload.users.size());
      ASSERT_TRUE(task.gpu_type == kAnyGpuType || task.gpu_type < workload.gpu_types.size());
      ASSERT_LE(size_t{task.first_use} + task.use_count, workload.uses.size());
    }
    for (const auto& use : workload.uses) ASSERT_LT(use.dataset, workload.datasets.size());
  }

  void try_all(const char* sample, const std::function<Result<Trace>(const std::string&)>& read) {
    ASSERT_TRUE(read(file(sample))) << "the sample is good";
    for (int round = 0; round < kRounds; ++round) {
      const auto text = harm(sample);
      SCOPED_TRACE(testing::PrintToString(text));
      ASSERT_NO_FATAL_FAILURE(expect_sound(read(file(text))));
    }
  }

  std::mt19937_64 random_{1};
  TraceOptions options_{.max_units = 4096, .max_gpus = 1024};
};

TEST_F(Hostile, Philly) {
  try_all(kPhilly, [this](const std::string& path) { return read_philly(path, options_); });
}

TEST_F(Hostile, Swf) {
  try_all(kSwf, [this](const std::string& path) { return read_swf(path, options_); });
}

TEST_F(Hostile, History) {
  try_all(kHistory, [this](const std::string& path) { return read_history(path, options_); });
}

TEST_F(Hostile, Openb) {
  const auto pods = file(kGoodPods, "pods"), nodes = file(kGoodNodes, "nodes");
  const auto trace_of = [](Result<OpenbTrace> both) -> Result<Trace> {
    if (!both) return tl::unexpected(both.error());
    return std::move(both->trace);
  };
  try_all(kGoodPods,
          [&](const std::string& path) { return trace_of(read_openb(path, nodes, options_)); });
  try_all(kGoodNodes,
          [&](const std::string& path) { return trace_of(read_openb(pods, path, options_)); });
}

}  // namespace
}  // namespace tierpilot::sim
