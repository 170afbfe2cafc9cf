// "page", "heat" and "move" of tiertool.
#include <gmock/gmock.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/json_text.h"
#include "tests/support/scratch_directory.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/heat_picture.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

class MemoryObjects : public ::testing::Test {
 protected:
  MemoryObjects() {
    context_.output = {false, out_, err_};
    context_.discover.nvml_library.clear();
  }

  int run(std::vector<std::string> args) {
    CLI::App app{"", "tiertool"};
    app.require_subcommand(1);
    add_page(app, context_);
    add_heat(app, context_);
    add_move(app, context_);
    std::vector<const char*> argv{"tiertool"};
    for (const auto& arg : args) argv.push_back(arg.c_str());
    const auto code =
        parse_arguments(app, static_cast<int>(argv.size()), argv.data(), context_.output);
    return code ? *code : context_.command();
  }

  void use_numa_maps(const std::string& text) {
    std::filesystem::create_directories(root_.path() + "/proc/7");
    std::ofstream(root_.path() + "/proc/7/numa_maps") << text;
    context_.sysroot = Sysroot(root_.path());
    context_.foreign_root = true;
  }

  ScratchDirectory root_;
  std::ostringstream out_, err_;
  Context context_;
};

TEST_F(MemoryObjects, PageShowSumsByNodeAndSortsBySize) {
  use_numa_maps(
      "5500000 default heap anon=3 N0=3 kernelpagesize_kB=4\n"
      "7f00000 bind:1 file=/lib/some\\040thing mapped=2 mapmax=3 N1=2 kernelpagesize_kB=2048\n"
      "7fff000 default\n");
  EXPECT_EQ(run({"page", "show", "7", "-j"}), kExitOk) << err_.str();
  const auto value = parse_json<ordered_json>(out_.str());
  EXPECT_EQ(value["nodes"][0]["bytes"], 3 * 4096);
  EXPECT_EQ(value["nodes"][1]["bytes"], 4 << 20);
  ASSERT_EQ(value["mappings"].size(), 2U);
  EXPECT_EQ(value["mappings"][0]["policy"], "bind:1");
  EXPECT_EQ(value["mappings"][1]["name"], "heap");
}

TEST_F(MemoryObjects, PageShowRefusesWhatTheKernelNeverWrites) {
  for (const char* text : {"zz default N0=1\n", "1000\n", "1000 default N0=x\n",
                           "1000 default N99999=1\n", "1000 default kernelpagesize_kB=3 N0=1\n"}) {
    use_numa_maps(text);
    EXPECT_EQ(run({"page", "show", "7"}), kExitFailed) << text;
    EXPECT_THAT(err_.str(), HasSubstr("numa_maps line 1"));
  }
}

TEST_F(MemoryObjects, AProcessThatIsNotThereIsNotFound) {
  EXPECT_EQ(run({"page", "show", "1073741823"}), kExitNotFound);
  EXPECT_EQ(run({"page", "show", "-3"}), kExitUsage);
}

TEST_F(MemoryObjects, WrongWordsAreUsageErrors) {
  EXPECT_EQ(run({"move", "run", "1", "--policy", "hope"}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("static, heat or balance"));
  EXPECT_EQ(run({"move", "run", "1", "--mode", "force"}), kExitUsage);
  EXPECT_EQ(run({"move", "run", "1", "--cap", "much"}), kExitUsage);
  EXPECT_EQ(run({"move", "run", "1", "--tracker", "bad"}), kExitUsage);
  EXPECT_EQ(run({"move", "run", "1", "--policy", "heat", "--tier", "0"}), kExitUsage);
  for (const char* verb : {"page", "heat"})
    EXPECT_EQ(run({verb, "show", "1", "--limit", "-1"}), kExitUsage);
  EXPECT_EQ(run({"move", "run", "1", "--limit", "-1"}), kExitUsage);
  EXPECT_EQ(run({"move", "run", "1", "--policy", "static", "--tier", "-1"}), kExitUsage);
  EXPECT_EQ(run({"top", "--limit", "-1"}), kExitUsage);
  EXPECT_EQ(run({"move", "stat", "--seconds", "-1"}), kExitUsage);
}

TEST_F(MemoryObjects, ObservingThisProcessMovesNothing) {
  const int code = run(
      {"move", "run", std::to_string(::getpid()), "--seconds", "0.3", "--interval", "0.1", "-j"});
  if (code == kExitFailed) {
    EXPECT_THAT(err_.str(), HasSubstr("unavailable"));
    GTEST_SKIP() << "no tracker here";
  }
  const auto value = parse_json<ordered_json>(out_.str());
  EXPECT_EQ(value["mode"], "observe");
  EXPECT_EQ(value["promoted_bytes"], 0);
  EXPECT_TRUE(value["moves"].empty());
  EXPECT_GT(value["tracked_bytes"], 0);
}

const std::vector<HeatRegion> kRegions{
    {0x1000, 0x5000, 0.0F, 3, 12}, {0x5000, 0x9000, 100.0F, 3, 12}, {0xa000, 0xb000, 0.0F, 0, 12}};

TEST(HeatPicture, ALineGoesFromNothingToTheHottest) {
  EXPECT_EQ(heat_line(kRegions, 0x1000, 0x9000, 8, 100), "    @@@@");
  EXPECT_EQ(heat_line(kRegions, 0x9000, 0xb000, 4, 100), "????");
  EXPECT_EQ(heat_line({}, 0, 0x1000, 2, 0), "??");
}

TEST(HeatPicture, DrawsFramesAsSvg) {
  const auto svg = heat_svg({{1, kRegions}, {2, kRegions}}, "two frames");
  EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
  EXPECT_THAT(svg, ::testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("two frames"));
  EXPECT_THAT(svg, HasSubstr("#dddddd")) << "what is not known is grey";
  EXPECT_THAT(heat_svg({}, "none"), ::testing::EndsWith("</svg>\n"));
}

TEST(HeatPicture, StretchesJoinTouchingRegions) {
  const auto stretches = stretches_of(kRegions);
  ASSERT_EQ(stretches.size(), 2U);
  EXPECT_EQ(stretches[0].end, 0x9000U);
  EXPECT_FLOAT_EQ(hottest_of(kRegions), 100);
}

}  // namespace
}  // namespace tierpilot::tiertool
