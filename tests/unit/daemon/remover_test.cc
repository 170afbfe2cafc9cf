// Folders are removed and measured by threads of their own, however deep they are.
#include "daemon/agent/tasks/remover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "daemon/agent/tasks/tree_sizes.h"
#include "no_more_threads.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {
namespace fs = std::filesystem;

constexpr int kDeep = 3'000;  // far more than paths may be long

// As long as it lives this process opens few files.
class FewDescriptors {
 public:
  FewDescriptors() {
    constexpr rlim_t kMore = 100;
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next.get()) + kMore;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

struct RemoverTest : testing::Test {
  fs::path folder(const std::string& name) {
    const fs::path path = scratch.path() + "/" + name;
    fs::create_directories(path / "deep/er");
    std::ofstream(path / "deep/er/file") << "left";
    return path;
  }
  // In each folder one more, before and after it a file. Gives how much room all of it takes.
  static uint64_t fill_deep(const fs::path& top) {
    UniqueFd folder(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    uint64_t bytes = 0;
    const auto count = [&](int parent, const char* name) {
      struct stat info {};
      EXPECT_EQ(::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW), 0);
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    };
    const auto write = [&](const char* name) {
      const UniqueFd file(::openat(folder.get(), name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      EXPECT_EQ(::write(file.get(), "text", 4), 4);
      count(folder.get(), name);
    };
    for (int depth = 0; depth < kDeep; ++depth) {
      write("a");
      EXPECT_EQ(::mkdirat(folder.get(), "down", 0700), 0);
      write("z");
      const UniqueFd parent = std::move(folder);
      folder.reset(::openat(parent.get(), "down", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      count(parent.get(), "down");
    }
    return bytes;
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

TEST_F(RemoverTest, ADeepFolderTakesFewDescriptors) {
  const auto deep = folder("1-1");
  fs::create_directory(deep / ".deep-0");  // names that it gives
  std::ofstream(deep / ".deep-1") << "left";
  fill_deep(deep);
  const FewDescriptors few;
  Remover remover;
  EXPECT_TRUE(remover.remove(deep));
  EXPECT_TRUE(empty_soon());
}

TEST_F(RemoverTest, WhereLinksLeadNothingIsRemoved) {
  const ScratchDirectory elsewhere;
  const auto kept = fs::path(elsewhere.path()) / "kept";
  std::ofstream(kept) << "somebody's";
  fs::create_directory_symlink(elsewhere.path(), folder("1-1") / "folder");
  fs::create_symlink(kept, scratch.path() + "/1-1/file");
  fs::create_directory_symlink(elsewhere.path(), scratch.path() + "/2-1");
  Remover remover;
  remover.remove(scratch.path() + "/1-1");
  remover.remove(scratch.path() + "/2-1");
  EXPECT_TRUE(empty_soon());
  EXPECT_TRUE(fs::exists(kept));
}

TEST_F(RemoverTest, ADeepFolderIsMeasuredWithFewDescriptors) {
  const fs::path deep = scratch.path() + "/1-1";
  fs::create_directory(deep);
  const uint64_t bytes = fill_deep(deep);
  ASSERT_GT(bytes, 0u);
  {
    const FewDescriptors few;
    TreeSizes sizes;
    const auto measured = [&] { return sizes.of({{deep, 1}})[0]; };
    for (int tries = 0; tries < 3000 && !measured(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(measured(), bytes);
  }
  Remover remover;
  remover.remove(deep);
  EXPECT_TRUE(empty_soon());
}

}  // namespace
}  // namespace tierpilot::agent
