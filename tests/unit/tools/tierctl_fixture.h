// Commands of tierctl, asked of a coordinator that answers what the test says.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/tools/fake_cluster.h"
#include "tests/unit/tools/ran_tierctl.h"

namespace tierpilot {

class Tierctl : public testing::Test {
 protected:
  Ran at(std::vector<std::string> words) {
    words.insert(words.begin(), {"--connect", fake_.address()});
    return run(std::move(words));
  }
  void add_tasks(std::initializer_list<const char*> states) {
    for (const char* state : states) fake_.state.tasks[fake_.state.tasks.size() + 1] = state;
  }
  FakeCluster fake_;
};

inline void expect_parts(const Ran& ran, std::initializer_list<const char*> parts) {
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  for (const char* part : parts)
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << " is missing in\n" << ran.out;
}

}  // namespace tierpilot
