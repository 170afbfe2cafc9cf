#include <capnp/message.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/json_text.h"
#include "policies/sim/trace/readers.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/tools/fake_cluster.h"
#include "tools/tierctl/history_line.h"
#include "tools/tierctl/tierctl.h"

namespace tierpilot {
namespace {

using nlohmann::json;

class HistoryExport : public testing::Test {
 protected:
  struct Ran {
    int code;
    std::string out, err;
  };
  Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), {"tierctl", "--connect", fake_.address(), "history", "export"});
    std::vector<const char*> argv;
    for (const auto& word : words) argv.push_back(word.c_str());
    std::ostringstream out, err;
    const int code =
        tierctl::run(static_cast<int>(argv.size()), argv.data(), Output(false, out, err));
    return {code, out.str(), err.str()};
  }
  static std::vector<json> lines(const std::string& text) {
    std::vector<json> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.push_back(parse_json<json>(line));
    return all;
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void SetUp() override {
    fake_.state.tasks = {
        {1, "succeeded"}, {2, "waiting"}, {3, "waiting"}, {4, "failed"}, {5, "running"}};
  }
  FakeCluster fake_;
  ScratchDirectory scratch_;
};

TEST_F(HistoryExport, AHeaderThenDatasetsBeforeTheirFirstUseThenTasks) {
  const auto ran = run({});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto all = lines(ran.out);
  ASSERT_EQ(all.size(), 6u) << ran.out;
  EXPECT_EQ(all[0]["schema"], "tierpilot-history");
  EXPECT_EQ(all[0]["version"], 1);
  EXPECT_EQ(all[1]["dataset"], "genes");
  EXPECT_EQ(all[1]["bytes"], 4096);
  EXPECT_EQ(all[2]["dataset"], "gone");
  EXPECT_TRUE(all[2]["bytes"].is_null());
  EXPECT_TRUE(all[2].contains("bytes_unavailable"));
  EXPECT_EQ(all[3]["task"], 1);
  EXPECT_EQ(all[3]["user"], "eve");
  EXPECT_EQ(all[3]["submitted_ms"], 1000);
  EXPECT_EQ(all[3]["wall_ns"], 700'000'000);
  EXPECT_EQ(all[3]["served_bytes"], 5096);
  EXPECT_EQ(all[3]["uses"][0], (json{{"dataset", "genes"}, {"write", true}}));
  EXPECT_FALSE(ran.out.find("exit 0") != std::string::npos) << "commands are nobody else's";
  EXPECT_TRUE(all[5]["finished_ms"].is_null());
  EXPECT_TRUE(all[5].contains("wall_ns_unavailable"));
}

TEST_F(HistoryExport, TheSpanIsTheCoordinatorsTime) {
  ASSERT_EQ(run({"--since", "20s"}).code, kExitOk);  // its clock shows 61 s
  EXPECT_EQ(fake_.state.history_from_ms, 41'000);
  EXPECT_EQ(fake_.state.history_until_ms, 61'001);
  ASSERT_EQ(run({"--since", "1970-01-01T00:00:07Z", "--until", "10s"}).code, kExitOk);
  EXPECT_EQ(fake_.state.history_from_ms, 7'000);
  EXPECT_EQ(fake_.state.history_until_ms, 51'000);
  EXPECT_EQ(run({"--since", "yesterday"}).code, kExitUsage);
}

TEST_F(HistoryExport, AFileIsCompleteOrNotThere) {
  const auto file = scratch_.path() + "/history.jsonl";
  const auto ran = run({"-o", file, "-j"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out, "");
  const auto summary = parse_json<json>(ran.err)["exported"];
  EXPECT_EQ(summary["tasks"], 3);
  EXPECT_EQ(summary["not_ended"], 1);
  EXPECT_EQ(summary["datasets_of_unknown_size"], 1);
  EXPECT_EQ(summary["first_submitted_ms"], 1000);
  EXPECT_EQ(lines(read(file)).size(), 6u);
  EXPECT_FALSE(std::filesystem::exists(file + ".part"));
  ASSERT_EQ(run({"-o", "/dev/null"}).code, kExitOk);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null")) << "a device is not replaced";
  const auto refused = run({"-o", scratch_.path() + "/nowhere/history.jsonl"});
  EXPECT_NE(refused.code, kExitOk);
  EXPECT_NE(refused.err.find("No such file"), std::string::npos) << refused.err;
}

TEST_F(HistoryExport, PseudonymsTellWhoIsTheSame) {
  const auto ran = run({"--anonymise"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  for (const char* name : {"eve", "genes", "gone", "\"t1\""})
    EXPECT_EQ(ran.out.find(name), std::string::npos) << name << ran.out;
  const auto all = lines(ran.out);
  EXPECT_EQ(all[0]["anonymised"], true);
  EXPECT_EQ(all[3]["user"], all[4]["user"]);
  EXPECT_EQ(all[1]["dataset"], all[3]["uses"][0]["dataset"]);
  EXPECT_NE(all[3]["user"], lines(run({"--anonymise"}).out)[3]["user"]) << "another key";
}

TEST_F(HistoryExport, AKeyKeepsPseudonyms) {
  const auto key = scratch_.path() + "/key";
  std::ofstream(key) << "0123456789abcdef";
  const auto once = lines(run({"--anonymise", "--key", key}).out);
  const auto again = lines(run({"--anonymise", "--key", key}).out);
  ASSERT_EQ(once.size(), 6u);
  EXPECT_EQ(once[3], again[3]);
  std::ofstream(key) << "short";
  EXPECT_NE(run({"--anonymise", "--key", key}).err.find("at least 16"), std::string::npos);
  EXPECT_EQ(run({"--key", key}).code, kExitUsage);
}

TEST_F(HistoryExport, TheSimulatorReadsIt) {
  const auto file = scratch_.path() + "/history.jsonl";
  ASSERT_EQ(run({"-o", file}).code, kExitOk);
  const auto trace = sim::read_history(file, {});
  ASSERT_TRUE(trace) << trace.error().message;
  const auto& workload = trace->workload;
  ASSERT_EQ(workload.tasks.size(), 2u) << "one is still running";
  EXPECT_DOUBLE_EQ(workload.tasks[0].operations, 0.7 * sim::kReferenceOperationsPerSecond);
  ASSERT_EQ(workload.datasets.size(), 2u);
  EXPECT_EQ(workload.datasets[0].bytes, 4096u);
  EXPECT_EQ(workload.datasets[1].bytes, 1000u) << "what is left of the bytes served";
  EXPECT_EQ(workload.users, std::vector<std::string>{"eve"});
}

TEST(HistoryLine, TellsGangsFromTheirRanks) {
  const auto names = tierctl::Pseudonyms::make(false, "");
  ASSERT_TRUE(names.has_value());
  capnp::MallocMessageBuilder message;
  auto task = message.initRoot<wire::Task>();
  auto gang = task.initSpec().initGang();
  gang.setRanks(4);
  gang.setEngine("gpu");
  gang.setGpusPerRank(2);
  task.setRestarts(3);
  const auto of_gang = tierctl::task_line(task.asReader(), *names);
  EXPECT_EQ(parse_json<json>(of_gang["gang"].dump()),
            (json{{"ranks", 4}, {"units_per_rank", 2}, {"engine", "gpu"}, {"restarts", 3}}));
  task.setGang(7);
  task.setRank(1);
  const auto of_rank = tierctl::task_line(task.asReader(), *names);
  EXPECT_FALSE(of_rank.contains("gang"));
  EXPECT_EQ(of_rank["rank_of"], 7);
  EXPECT_EQ(of_rank["rank"], 1);
}

}  // namespace
}  // namespace tierpilot
