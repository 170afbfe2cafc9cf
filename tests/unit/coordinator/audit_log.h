// What the audit log of this process says: it goes where the log went at its first line.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

#include "base/log.h"

namespace tierpilot::test {

class AuditLog : public ::testing::Test {
 protected:
  static constexpr int64_t kSecondNs = 1'000'000'000;

  static void SetUpTestSuite() {
    static const auto kLogger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out()));
    spdlog::set_default_logger(kLogger);
    spdlog::set_pattern("%v");
  }
  void SetUp() override { out().str(""); }
  static std::ostringstream& out() {
    static std::ostringstream stream;
    return stream;
  }
};

}  // namespace tierpilot::test
