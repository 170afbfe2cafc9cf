#include "tools/output/output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/json_text.h"

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

const Table kTiers{.rows = "/tiers",
                   .columns = {{"TIER", "/tier"},
                               {"P50 ns", "/latency_ns/p50", Format::kNumber},
                               {"EVICT GB/s", "/evict_gb_per_s", Format::kNumber}}};

ordered_json two_tiers() {
  return {{"tiers",
           {{{"tier", "dram0"}, {"latency_ns", {{"p50", 95.5}}}, {"evict_gb_per_s", 2.5}},
            {{"tier", "directory:/srv"},
             {"latency_ns", {{"p50", 123456}}},
             {"evict_gb_per_s", nullptr},
             {"evict_gb_per_s_unavailable", "no slower tier"}}}}};
}

class OutputTest : public ::testing::Test {
 protected:
  Output output(bool json) { return {json, out_, err_}; }
  std::ostringstream out_, err_;
};

TEST_F(OutputTest, ColumnsAreAlignedAndNumbersStandRight) {
  EXPECT_EQ(format_table(two_tiers(), kTiers),
            "TIER             P50 ns  EVICT GB/s\n"
            "dram0              95.5        2.50\n"
            "directory:/srv  123,456       - [1]\n"
            "[1] no slower tier\n");
}

TEST_F(OutputTest, AReasonIsToldOnce) {
  auto value = two_tiers();
  value["tiers"].push_back(value["tiers"][1]);
  const auto text = format_table(value, kTiers);
  EXPECT_EQ(text.find("no slower tier"), text.rfind("no slower tier"));
}

TEST_F(OutputTest, AnObjectIsARecord) {
  const ordered_json value{{"node", {{"name", "n1"}, {"free", 1048576}}}};
  EXPECT_EQ(format_table(value, {.rows = "/node",
                                 .columns = {{"name", "/name"},
                                             {"free memory", "/free", Format::kBytes},
                                             {"gone", "/gone"}}}),
            "name         n1\nfree memory  1.0 MiB\ngone         -\n");
}

TEST_F(OutputTest, NoRowsSayWhatTheTableIsToldToSay) {
  const Table table{.rows = "/x", .columns = {{"X", "/x"}}, .empty = "no nodes are registered"};
  EXPECT_EQ(format_table({{"x", ordered_json::array()}}, table), "no nodes are registered\n");
  EXPECT_EQ(format_table(ordered_json::object(), {.rows = "/x", .columns = {{"X", "/x"}}}), "X\n");
}

TEST_F(OutputTest, TablesStandApart) {
  EXPECT_EQ(print(output(false), two_tiers(), {kTiers, {.title = "again", .rows = "/none"}}),
            kExitOk);
  EXPECT_NE(out_.str().find("\n\nagain\n"), std::string::npos);
}

TEST_F(OutputTest, JsonCarriesTheSchemaFirstAndTheValueWhole) {
  EXPECT_EQ(print(output(true), two_tiers(), {kTiers}), kExitOk);
  EXPECT_EQ(out_.str().find("{\n  \"schema\": 1,"), 0U);
  auto document = parse_json<ordered_json>(out_.str());
  EXPECT_EQ(document["tiers"], two_tiers()["tiers"]);
  EXPECT_FALSE(document.contains("warnings"));
}

TEST_F(OutputTest, WarningsDegrade) {
  EXPECT_EQ(print(output(false), two_tiers(), {kTiers}, {"CAP_SYS_NICE is missing"}),
            kExitDegraded);
  EXPECT_EQ(err_.str(), "warning: CAP_SYS_NICE is missing\n");
  out_.str("");
  EXPECT_EQ(print(output(true), two_tiers(), {kTiers}, {"a", "b"}), kExitDegraded);
  EXPECT_EQ(parse_json<ordered_json>(out_.str())["warnings"], (ordered_json{"a", "b"}));
}

TEST_F(OutputTest, ErrorsGoToStderrInBothForms) {
  const Error error{ErrorCode::kNotFound, "dataset 'x' does not exist"};
  EXPECT_EQ(print_error(output(false), error), kExitNotFound);
  EXPECT_EQ(err_.str(), "error: dataset 'x' does not exist\n");
  err_.str("");
  EXPECT_EQ(print_error(output(true), error), kExitNotFound);
  const auto document = parse_json<ordered_json>(err_.str());
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["error"]["code"], error_code_name(ErrorCode::kNotFound));
  EXPECT_EQ(document["error"]["message"], error.message);
  EXPECT_TRUE(out_.str().empty());
}

TEST_F(OutputTest, BrokenUtf8IsReplacedNotThrown) {
  EXPECT_EQ(print(output(true), {{"name", "\xff\xfe"}}, {}), kExitOk);
  EXPECT_TRUE(ordered_json::accept(out_.str()));
}

TEST_F(OutputTest, AStreamThatTakesNothingIsAFailure) {
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(print(output(false), two_tiers(), {kTiers}), kExitFailed);
  EXPECT_NE(err_.str().find("standard output"), std::string::npos);
}

TEST_F(OutputTest, ExitCodesTellNotFoundFromFailed) {
  EXPECT_EQ(exit_code_for(ErrorCode::kUnreachable), kExitNotFound);
  EXPECT_EQ(exit_code_for(ErrorCode::kNotFound), kExitNotFound);
  EXPECT_EQ(exit_code_for(ErrorCode::kDenied), kExitFailed);
  EXPECT_EQ(exit_code_for(ErrorCode::kInvalid), kExitFailed);
}

TEST_F(OutputTest, UnavailableIsNullWithItsReason) {
  ordered_json object;
  set_or_unavailable(object, "a_ns", 1.5, "");
  set_or_unavailable(object, "b_ns", std::nullopt, "no L3");
  EXPECT_EQ(object.dump(), R"({"a_ns":1.5,"b_ns":null,"b_ns_unavailable":"no L3"})");
}

}  // namespace
}  // namespace tierpilot
