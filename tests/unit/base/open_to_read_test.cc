#include "base/files/open_to_read.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

namespace tierpilot {
namespace {

std::string path_of(const char* name) {
  const auto path = testing::TempDir() + name;
  std::remove(path.c_str());
  return path;
}

std::string message_of(const std::string& path) {
  const auto text = read_small_file(path, 64 << 10);
  return text ? "" : text.error().message;
}

TEST(ReadSmallFile, ReadsAllOfItAndNoMoreThanIsAllowed) {
  const auto path = path_of("small-file");
  std::ofstream(path) << std::string(64 << 10, 'x');
  EXPECT_EQ(read_small_file(path, 64 << 10)->size(), 64u << 10);
  std::ofstream(path, std::ios::app) << 'x';
  EXPECT_NE(message_of(path).find("larger than 64 KiB"), std::string::npos) << message_of(path);
  EXPECT_NE(message_of("/dev/zero").find("larger"), std::string::npos);
  EXPECT_EQ(*read_small_file("/dev/null", 1024), "");
  EXPECT_NE(message_of("/tmp").find("'/tmp'"), std::string::npos);
  EXPECT_EQ(read_small_file("/no/such", 1024).error().code, ErrorCode::kNotFound);
}

TEST(ReadSmallFile, APipeThatNobodyWritesToIsRefused) {
  const auto path = path_of("silent-pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(message_of(path).find("nobody writes to"), std::string::npos) << message_of(path);
}

TEST(ReadSmallFile, APipeIsWaitedForWhileSomebodyHasItOpen) {
  const auto path = path_of("slow-pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    EXPECT_EQ(write(fd.get(), "late", 4), 4);
  });
  const auto text = read_small_file(path, 1024);
  writer.join();
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "late");
}

}  // namespace
}  // namespace tierpilot
