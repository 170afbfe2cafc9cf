// Work on files of others, in a child process with limits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <new>

#include "tools/lab/guarded.h"

namespace tierpilot::lab {
namespace {

Result<std::string> maps(size_t gib) {
  void* room =
      mmap(nullptr, gib << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return std::string(room == MAP_FAILED ? "refused" : "mapped");
}

TEST(GuardedChild, HasEightGibibytesMoreThanItsParent) {
  EXPECT_EQ(in_guarded_child("f", [] { return maps(7); }), "mapped");
  EXPECT_EQ(in_guarded_child("f", [] { return maps(9); }), "refused");
  // Whatever the parent has mapped itself.
  void* room = mmap(nullptr, size_t{40} << 30, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  EXPECT_EQ(in_guarded_child("f", [] { return maps(7); }), "mapped");
  EXPECT_EQ(in_guarded_child("f", [] { return maps(9); }), "refused");
  munmap(room, size_t{40} << 30);
}

TEST(GuardedChild, ThatHasTooLittleMemorySaysSo) {
  const auto answer =
      in_guarded_child("big.onnx", []() -> Result<std::string> { throw std::bad_alloc(); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kExhausted);
  for (const char* word : {"'big.onnx'", "8 GiB"})
    EXPECT_NE(answer.error().message.find(word), std::string::npos) << answer.error().message;
}

// Makes every pipe of the process one that takes no more than it has room for.
void let_pipes_refuse() {
  for (int fd = 3; fd < 256; ++fd) {
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

TEST(GuardedChild, HalfAnAnswerIsNone) {
  constexpr size_t kBytes = size_t{64} << 20;
  const auto answer = in_guarded_child("f", []() -> Result<std::string> {
    let_pipes_refuse();
    return std::string(kBytes, 'x');
  });
  ASSERT_FALSE(answer) << answer->size() << " of " << kBytes << " bytes";
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  EXPECT_NE(answer.error().message.find("no answer"), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace tierpilot::lab
