// Logs are refused with place and cause, whatever stands in them.
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/random.h"
#include "policies/swap/policies.h"
#include "tests/unit/swap/logs.h"

namespace tierpilot::swap {
namespace {

constexpr const char* kStart = R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"})"
                               "\n";

void expect_refused(const std::string& text, const std::string& part) {
  const auto graph = read_dtr_text(text);
  ASSERT_FALSE(graph.has_value()) << text;
  EXPECT_NE(graph.error().message.find(part), std::string::npos) << graph.error().message;
}

TEST(DtrLog, LevelsOfTheExample) {
  const auto graph = example();
  EXPECT_EQ(graph.operators.size(), 4);
  EXPECT_EQ(graph.storages.size(), 5) << "w, h, m, the new v, g";
  EXPECT_EQ(graph.tensors.size(), 6) << "and the view";
  EXPECT_EQ(graph.outputs.size(), 3);
  EXPECT_EQ(graph.backward, 3u);
}

TEST(DtrLog, OutputsComeInTheOrderOfTheirFirstNames) {
  const std::string lines = kExampleLog;
  const auto outputs = [](const std::string& text) {
    const auto graph = read_dtr_text(text);
    EXPECT_TRUE(graph) << graph.error().message;
    return graph->outputs;
  };
  const auto as_before = outputs(lines);
  ASSERT_EQ(as_before.size(), 3);
  const auto copied = [&](const std::string& from, const std::string& to) {
    return R"({"INSTRUCTION":"COPY","DST":")" + to + R"(","SRC":")" + from +
           R"("})"
           "\n"
           R"({"INSTRUCTION":"RELEASE","NAME":")" +
           from +
           R"("})"
           "\n";
  };
  EXPECT_EQ(outputs(lines + copied("v", "p") + copied("w", "q")), as_before) << "none is new";
  EXPECT_EQ(outputs(lines + R"({"INSTRUCTION":"COPY","DST":"o","SRC":"g"})"), as_before) << "once";
  const std::vector<TensorId> last_two_alike{as_before[0], as_before[2]};
  EXPECT_EQ(outputs(lines + R"({"INSTRUCTION":"COPY_FROM","DST":"v","SRC":"g"})"), last_two_alike);
}

TEST(DtrLog, WhatIsBeforeTheStartIsSkipped) {
  EXPECT_TRUE(read_dtr_text(R"({"INSTRUCTION":"CONSTANT","NAME":"x"})"
                            "\n" +
                            std::string(kExampleLog)));
  for (const std::string before :
       {"epoch 1, loss 0.3", "{", "[1]", R"({"loss": 3})", R"({"INSTRUCTION":7})",
        R"({"INSTRUCTION":"ANNOTATE"})", R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":["START"]})",
        R"({"INSTRUCTION":"PIN","NAME":"x"})",
        R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"BACKWARD"})", "\xff\xfe"}) {
    const auto graph = read_dtr_text(before + "\n" + kExampleLog);
    ASSERT_TRUE(graph) << before << ": " << graph.error().message;
    EXPECT_EQ(graph->backward, 3U) << before;
    expect_refused(before, "has no line");
  }
  expect_refused(std::string(2 << 20, 'x') + "\n" + kExampleLog, ":1: ");
}

TEST(DtrLog, RefusesWithPlaceAndCause) {
  const std::string start = kStart;
  expect_refused("", "has no line");
  expect_refused(start, "no operators");
  expect_refused(start + "{", ":2: is not a JSON object");
  expect_refused(start + R"({"INSTRUCTION":"PIN","NAME":"x"})", "'PIN' is not an instruction");
  expect_refused(start + R"({"INSTRUCTION":"CONSTANT","NAME":"x"})", "ends before MEMORY of 'x'");
  expect_refused(start + R"({"INSTRUCTION":"COPY","DST":"y","SRC":"x"})", "'x' was never defined");
  const auto constant = start + R"({"INSTRUCTION":"CONSTANT","NAME":"x"})"
                                "\n";
  expect_refused(constant + R"({"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"-1"})",
                 "cannot have -1");
  expect_refused(constant + R"({"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"many"})", "'many'");
  const auto x = constant + R"({"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"8"})"
                            "\n";
  const auto call = x +
                    R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":["x"],"RESULT":["y"],"TIME":"1"})"
                    "\n"
                    R"({"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"8"})"
                    "\n";
  expect_refused(call + R"({"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"1"})", "argument 1");
  expect_refused(x + R"({"INSTRUCTION":"MUTATE","NAME":"f","ARGS":["x"],"MUTATE":[-1],"TIME":"1"})",
                 "overwrites argument -1");
  const std::string release = R"({"INSTRUCTION":"RELEASE","NAME":"x"})"
                              "\n";
  expect_refused(x + release + release, "released before");
}

TEST(DtrLog, AFileThatIsNotThere) {
  const auto graph = read_dtr_log("/no/such/file");
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("/no/such/file"), std::string::npos);
}

// Bytes changed, cut and doubled at random: no crash, and what is still read can be replayed.
TEST(DtrLog, ALineThatCannotBeReadIsPlacedOnceAndOfALog) {
  const auto endless = read_dtr_log("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_TRUE(endless.error().message.starts_with("log /dev/zero:1: the line is longer"))
      << endless.error().message;
  const auto later = read_dtr_text(kStart + std::string(3 << 20, 'x'));
  ASSERT_FALSE(later);
  EXPECT_TRUE(later.error().message.starts_with("log /")) << later.error().message;
  EXPECT_NE(later.error().message.find(":2: the line is longer"), std::string::npos)
      << later.error().message;
}

TEST(DtrLog, HostileBytes) {
  SeededRandom random(1);
  const std::string good = kExampleLog;
  int replayed = 0;
  for (int round = 0; round < 1500; ++round) {
    auto text = good;
    for (auto changes = 1 + random.below(3); changes > 0; --changes) {
      const auto at = random.below(text.size());
      if (random.chance(0.5))
        text[at] =
            static_cast<char>(random.chance(0.7) ? '0' + random.below(10) : random.below(256));
      else if (random.chance(0.5))
        text.erase(at, random.below(60));
      else
        text.insert(at, good.substr(random.below(good.size()), random.below(90)));
      if (text.empty()) text = "{";
    }
    const auto graph = read_dtr_text(text);
    if (!graph) {
      EXPECT_FALSE(graph.error().message.empty());
      continue;
    }
    ++replayed;
    const Limits limits{.budget_bytes = baseline(*graph).peak_bytes / 2};
    for (const auto* policy : {"h_DTR", "h_DTR_eq", "swap-quick"})
      EXPECT_TRUE(replay(*graph, policy, {.limits = limits}));
  }
  EXPECT_GT(replayed, 5);
}

std::string nested_deep() {
  const size_t levels = 500'000;
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(DtrLog, NestedDeepIsNothingItKnows) {
  expect_refused("{\"INSTRUCTION\":" + nested_deep() + "}\n", "has no line");
  expect_refused(std::string(kStart) + R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"TIME":"1"})" +
                     "\n{\"INSTRUCTION\":" + nested_deep() + "}\n",
                 "");
}

TEST(StepLog, NestedDeepIsNoNameOfAnOperator) {
  const TextFile file(R"({"tensors": [8, 8], "ops": [{"us": 2, "in": [0], "out": [1], "name": )" +
                      nested_deep() + R"(, "phase": )" + nested_deep() + "}]}");
  EXPECT_TRUE(read_step(file.path()));
}

int64_t most_resident_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{used.ru_maxrss} * 1024;
}

TEST(StepLog, OnlyBracketsAreNoStepAndTakeLittleMemory) {
  constexpr int64_t kText = 4 << 20, kMost = 40 * kText;
  const TextFile file(std::string(kText, '['));
  const auto before = most_resident_bytes();
  const auto graph = read_step(file.path());
  EXPECT_LT(most_resident_bytes() - before, kMost);
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("is not a JSON object"), std::string::npos);
}

TEST(StepLog, AnOperatorThatOverwritesManyTensors) {
  constexpr size_t kTensors = 30'000;
  std::string bytes, numbers;
  for (size_t at = 0; at < kTensors; ++at) {
    bytes += at == 0 ? "8" : ",8";
    numbers += fmt::format("{}{}", at == 0 ? "" : ",", at);
  }
  const TextFile file(fmt::format(R"({{"tensors": [{}], "ops": [
    {{"us": 2, "in": [], "out": [{}]}}, {{"us": 3, "in": [{}], "out": [{}]}}]}})",
                                  bytes, numbers, numbers, numbers));
  const auto graph = read_step(file.path());
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->operators.at(1).outputs.size(), kTensors);
  EXPECT_EQ(baseline(*graph).peak_bytes, 2 * 8 * static_cast<int64_t>(kTensors));
}

TEST(StepLog, OneStep) {
  const TextFile file(R"({"tensors": [8, 16, 4], "ops": [
    {"name": "f", "phase": "forward", "us": 2, "in": [0], "out": [1]},
    {"name": "g", "phase": "backward", "us": 3, "in": [1, 0], "out": [2, 0]}]})");
  const auto graph = read_step(file.path());
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(baseline(*graph).time_ns, 5000);
  // Input 8, activation 16, result 4, and the second copy of the input.
  EXPECT_EQ(baseline(*graph).peak_bytes, 8 + 16 + 4 + 8);
}

TEST(StepLog, RefusesNumbersOfNothing) {
  const TextFile file(R"({"tensors": [8], "ops": [{"us": 2, "in": [0], "out": [1]}]})");
  const auto graph = read_step(file.path());
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("ops[0]"), std::string::npos) << graph.error().message;
}

TEST(OperatorTable, RepeatsBlocks) {
  const TextFile file(
      "model,micro_batch,op,name,repeat,forward_us,backward_us,output_mb,weights_mb,kept_mb,"
      "forward_scratch_mb,backward_scratch_mb\n"
      "a,1,0,embed,1,10,20,1,1,1,0,0\na,1,1,f,3,1,2,1,1,1,0,0\na,1,2,g,3,1,2,1,1,1,0,0\n"
      "b,1,0,embed,1,10,20,1,1,1,0,0\n");
  const auto graphs = read_operator_table(file.path());
  ASSERT_TRUE(graphs) << graphs.error().message;
  ASSERT_EQ(graphs->size(), 2);
  EXPECT_EQ(graphs->front().name, "a/1");
  EXPECT_EQ(graphs->front().operators.size(), 2 * 7);
  EXPECT_EQ(baseline(graphs->front()).time_ns, 30'000 + 6 * 3'000);
}

// A kilobyte of nets of 100,000 operators each took gigabytes.
TEST(OperatorTable, ItsNetsTogetherHaveAnEnd) {
  std::string text =
      "model,micro_batch,name,repeat,forward_us,backward_us,output_mb,weights_mb,kept_mb,"
      "forward_scratch_mb,backward_scratch_mb\n";
  for (int net = 0; net < 4; ++net) text += fmt::format("a,{},f,80000,1,2,1,1,1,0,0\n", net);
  const TextFile file(text);
  const auto graphs = read_operator_table(file.path());
  ASSERT_FALSE(graphs);
  EXPECT_NE(graphs.error().message.find(":4: the nets so far"), std::string::npos)
      << graphs.error().message;
}

// One of a megabyte, 100,000 times, took all memory.
TEST(OperatorTable, NamesAreShort) {
  const TextFile file(
      "model,micro_batch,name,repeat,forward_us,backward_us,output_mb,weights_mb,kept_mb,"
      "forward_scratch_mb,backward_scratch_mb\n"
      "a,1," +
      std::string(300, 'f') + ",2,1,2,1,1,1,0,0\n");
  const auto graphs = read_operator_table(file.path());
  ASSERT_FALSE(graphs);
  EXPECT_NE(graphs.error().message.find(":2: \"name\" has over"), std::string::npos)
      << graphs.error().message;
}

}  // namespace
}  // namespace tierpilot::swap
