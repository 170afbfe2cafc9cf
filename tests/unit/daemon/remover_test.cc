// Folders are removed by a thread of their own.
#include "daemon/agent/tasks/remover.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "no_more_threads.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {
namespace fs = std::filesystem;

struct RemoverTest : testing::Test {
  fs::path folder(const std::string& name) {
    const fs::path path = scratch.path() + "/" + name;
    fs::create_directories(path / "deep/er");
    std::ofstream(path / "deep/er/file") << "left";
    return path;
  }
  bool empty_soon() const {
    for (int tries = 0; tries < 3000 && !scratch.empty(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return scratch.empty();
  }

  ScratchDirectory scratch;
};

TEST_F(RemoverTest, WithoutAThreadAFolderWaitsForTheNextCall) {
  Remover remover;
  {
    const NoMoreThreads full;
    remover.remove(folder("1-1"));
    EXPECT_FALSE(fs::exists(scratch.path() + "/1-1")) << "its name is free";
    EXPECT_FALSE(scratch.empty());
  }
  remover.remove(folder("2-1"));
  EXPECT_TRUE(empty_soon());
}

}  // namespace
}  // namespace tierpilot::agent
