// Traces as text in a scratch folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "policies/sim/trace/readers.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::sim {

class TraceTest : public testing::Test {
 protected:
  std::string file(std::string_view text, const std::string& name = "trace") {
    const auto path = scratch_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // Without data, so that a test sees what is in the file.
  TraceOptions options_{.datasets = std::nullopt};

 private:
  ScratchDirectory scratch_;
};

inline double seconds(const Task& task) {
  return task.operations / kReferenceOperationsPerSecond;
}

}  // namespace tierpilot::sim
