#include "base/memory_wish.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

using WishKind = MemoryWish::Kind;

TEST(MemoryWish, KnowsTheFourForms) {
  EXPECT_EQ(parse_memory_wish("")->kind, WishKind::kNone);
  EXPECT_EQ(parse_memory_wish("fast")->kind, WishKind::kFast);
  EXPECT_EQ(parse_memory_wish("slow")->kind, WishKind::kSlow);
  const auto interleave = parse_memory_wish("interleave:3,1");
  ASSERT_TRUE(interleave);
  EXPECT_EQ(interleave->kind, WishKind::kInterleave);
  EXPECT_EQ(interleave->fast_weight, 3u);
  EXPECT_EQ(interleave->slow_weight, 1u);
  const auto heap = parse_memory_wish("heap:1,255");
  ASSERT_TRUE(heap);
  EXPECT_EQ(heap->kind, WishKind::kHeap);
  EXPECT_EQ(heap->slow_weight, 255u);
}

TEST(MemoryWish, OnlyOneTierCanBeKept) {
  EXPECT_TRUE(parse_memory_wish("fast")->is_static());
  EXPECT_TRUE(parse_memory_wish("slow")->is_static());
  EXPECT_FALSE(parse_memory_wish("heap:1,1")->is_static());
  EXPECT_FALSE(MemoryWish{}.is_static());
}

TEST(MemoryWish, RefusesTheRestAndSaysWhatThereIs) {
  for (const char* text :
       {"Fast", " fast", "medium", "interleave", "interleave:", "interleave:1", "interleave:1,",
        "interleave:,1", "interleave:0,1", "interleave:1,0", "interleave:256,1", "interleave:1,1,1",
        "interleave:-1,1", "interleave:1, 1", "interleave:1,1x", "heap", "heap:a,b",
        "heap:99999999999,1"}) {
    const auto wish = parse_memory_wish(text);
    ASSERT_FALSE(wish) << text;
    EXPECT_EQ(wish.error().code, ErrorCode::kInvalid);
    EXPECT_NE(wish.error().message.find("interleave:W1,W2"), std::string::npos);
  }
  // What is hostile is not repeated at length.
  EXPECT_LT(parse_memory_wish(std::string(100'000, 'x')).error().message.size(), 300u);
}

}  // namespace
}  // namespace tierpilot
