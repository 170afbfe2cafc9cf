// Work on files of others, in a child process with limits.
#include <gtest/gtest.h>
#include <sys/mman.h>

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

}  // namespace
}  // namespace tierpilot::lab
