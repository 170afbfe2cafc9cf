#include "base/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>

#include "base/log.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One process has one audit log, which goes where the log went at its first line.
class Audit : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out());
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    spdlog::set_pattern("%v");
  }
  void SetUp() override { out().str(""); }
  static std::ostringstream& out() {
    static std::ostringstream stream;
    return stream;
  }
};

TEST_F(Audit, IsWrittenWhateverTheLevelIs) {
  spdlog::default_logger()->set_level(spdlog::level::warn);
  audit("user 'bob' over tls: drain node 'n1'");
  EXPECT_EQ(out().str(), "audit: user 'bob' over tls: drain node 'n1'\n");
  out().str("");
  spdlog::default_logger()->set_level(spdlog::level::off);
  audit("nothing");
  EXPECT_EQ(out().str(), "");
  spdlog::default_logger()->set_level(spdlog::level::info);
}

TEST_F(Audit, NobodyWritesALineOfHisOwn) {
  audit(
      "remove dataset 'a'\naudit: user 'root' over unix: \x1b[2J\xc2\x9b"
      "1m\xff");
  const auto written = out().str();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 1);
  EXPECT_THAT(out().str(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(out().str(), Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(out().str(), Not(HasSubstr("\xff")));
}

TEST_F(Audit, KeepsWhatIsTextAndCutsWhatIsLong) {
  audit("dataset 'Größe'");
  EXPECT_THAT(out().str(), HasSubstr("'Größe'"));
  out().str("");
  std::string cyrillic;
  for (int i = 0; i < 1000; ++i) cyrillic += "\xd0\x96";
  audit(cyrillic + "x");
  EXPECT_LT(out().str().size(), 600u);
  EXPECT_THAT(out().str(), Not(HasSubstr("?")));
  EXPECT_THAT(out().str(), HasSubstr("..."));
}

}  // namespace
}  // namespace tierpilot
