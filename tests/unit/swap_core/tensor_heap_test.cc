// Blocks in huge pages: none lies in another, what is given is used again, and what goes back to
// the kernel is free.
#include "swap/device/tensor_heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1
#endif

namespace tierpilot::swap {
namespace {

constexpr int64_t kMib = 1 << 20, kHeapPage = TensorHeap::kPageBytes;

char* taken(TensorHeap& heap, int64_t bytes, int value = 1) {
  auto* const data = static_cast<char*>(heap.take(bytes));
  if (data) std::memset(data, value, static_cast<size_t>(bytes));
  return data;
}

bool filled(const char* data, int64_t bytes, int value) {
  return std::all_of(data, data + bytes, [value](char c) { return c == static_cast<char>(value); });
}

char* page_of(char* data) {
  return data - reinterpret_cast<uintptr_t>(data) % 4096;
}

int64_t resident_bytes(const char* data, int64_t bytes) {
  std::vector<unsigned char> pages(static_cast<size_t>(bytes / 4096));
  EXPECT_EQ(mincore(const_cast<char*>(data), static_cast<size_t>(bytes), pages.data()), 0);
  return 4096 * std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; });
}

TEST(TensorHeap, TakesAnewWhatWasGiven) {
  TensorHeap heap(1 << 30);
  auto* const first = taken(heap, 6 * kMib);
  auto* const second = taken(heap, 6 * kMib);
  ASSERT_TRUE(first && second);
  heap.give(first);
  EXPECT_EQ(heap.take(6 * kMib), first);
  EXPECT_TRUE(filled(second, 6 * kMib, 1));
}

TEST(TensorHeap, PrefersMemoryThatItHasToASmallerGapOfWhichItHasNone) {
  TensorHeap heap(1 << 30);
  auto* const small = taken(heap, 2 * kHeapPage);
  auto* const wall = taken(heap, kHeapPage);
  auto* const large = taken(heap, 4 * kHeapPage);
  auto* const end = taken(heap, kHeapPage);
  ASSERT_TRUE(wall && end);
  heap.give(small);
  heap.trim(kHeapPage * 100);
  heap.give(large);
  EXPECT_EQ(heap.take(2 * kHeapPage), large);
}

TEST(TensorHeap, WholePagesGoBackAndNoBlockWithThem) {
  TensorHeap heap(1 << 30);
  std::vector<char*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(taken(heap, 3 * kMib, i + 1));
  for (int i = 0; i < 8; i += 2) heap.give(blocks[static_cast<size_t>(i)]);
  const auto pages = heap.trim(1 << 30);
  EXPECT_GT(pages, 0);
  EXPECT_LT(pages, 4 * 3 * kMib) << "what is free beside blocks stays";
  EXPECT_EQ(heap.trim(1 << 30), 0);
  heap.trim_all();
  EXPECT_EQ(resident_bytes(page_of(blocks[0]), kHeapPage), 0);
  for (size_t i = 1; i < 8; i += 2)
    EXPECT_TRUE(filled(blocks[i], 3 * kMib, static_cast<int>(i) + 1)) << i;
}

TEST(TensorHeap, GivesBackNoMoreThanIsAskedFor) {
  TensorHeap heap(1 << 30);
  auto* const data = taken(heap, 16 * kHeapPage);
  heap.give(data);
  const auto before = resident_bytes(page_of(data), 20 * kHeapPage);
  EXPECT_EQ(heap.trim(3 * kHeapPage - 5), 3 * kHeapPage);
  const auto given = before - resident_bytes(page_of(data), 20 * kHeapPage);
  EXPECT_LE(given, 3 * kHeapPage);
  EXPECT_GE(given, 2 * kHeapPage) << "of the last page little may have been written";
  EXPECT_EQ(heap.trim(0), 0);
}

TEST(TensorHeap, WhatTheKernelFillsUpGoesBackToo) {
  TensorHeap heap(1 << 30);
  std::vector<char*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(taken(heap, kMib));
  for (size_t i = 0; i < 16; i += 2) heap.give(blocks[i]);
  heap.trim_all();
  auto* const begin = page_of(blocks[0]);
  const auto in_pieces = resident_bytes(begin, 16 * kMib);
  if (madvise(begin, 16 * kMib, MADV_COLLAPSE) != 0) GTEST_SKIP() << "the kernel joins no pages";
  ASSERT_GT(resident_bytes(begin, 16 * kMib), in_pieces);
  heap.trim_all();
  EXPECT_EQ(resident_bytes(begin, 16 * kMib), in_pieces);
}

TEST(TensorHeap, SaysWhatItHasNoRoomFor) {
  TensorHeap heap(256 * kMib);
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, 257 * kMib, int64_t{1} << 62})
    EXPECT_EQ(heap.take(bytes), nullptr) << bytes;
  auto* const all = heap.take(255 * kMib);
  ASSERT_TRUE(all);
  EXPECT_EQ(heap.take(kMib), nullptr);
  heap.give(all);
  EXPECT_EQ(heap.take(255 * kMib), all);
  int other = 0;
  EXPECT_FALSE(heap.has(&other));
  EXPECT_TRUE(heap.has(all));
  TensorHeap none(int64_t{1} << 60);
  EXPECT_EQ(none.take(1), nullptr);
  EXPECT_FALSE(none.has(&other));
}

// BLAS libraries do (BLIS 0.9: its kernels for few rows load one more, and do not use it).
TEST(TensorHeap, ARowMayBeReadBehindTheLastBlock) {
  constexpr int64_t kRow = 8 * kMib;
  for (const int64_t bytes : {256 * kMib, 1024 * kMib}) {
    TensorHeap heap(bytes);
    auto* const data = static_cast<volatile char*>(heap.take(255 * kMib));
    ASSERT_TRUE(data);
    int sum = 0;
    for (auto at = 255 * kMib; at < 255 * kMib + kRow; at += 4096) sum += data[at];
    EXPECT_EQ(sum, 0) << bytes;
  }
}

TEST(TensorHeap, FillsWhatEnds) {
  TensorHeap heap(256 * kMib, 0x5b);
  auto* const data = taken(heap, kMib);
  heap.give(data);
  EXPECT_TRUE(filled(data, kMib, 0x5b));
}

TEST(TensorHeapDeathTest, EndsAProgramThatFreesTwice) {
  TensorHeap heap(256 * kMib);
  auto* const data = heap.take(kMib);
  heap.give(data);
  EXPECT_DEATH(heap.give(data), "");
}

struct Block {
  char* data = nullptr;
  int64_t bytes = 0;
  int value = 0;
};

// Takes, gives and trims by chance; what a block held when it ends is what was written to it.
void use_by_chance(TensorHeap& heap, uint32_t seed, int turns) {
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int turn = 0; turn < turns; ++turn) {
    const auto drawn = random() % 16;
    if (drawn < 8 && blocks.size() < 24) {
      const auto bytes = static_cast<int64_t>(random() % (5 * kMib)) + 1;
      const auto value = static_cast<int>(random() % 127) + 1;
      blocks.push_back({taken(heap, bytes, value), bytes, value});
      ASSERT_TRUE(blocks.back().data);
    } else if (drawn < 14 && !blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const auto& block = blocks.back();
      ASSERT_TRUE(filled(block.data, block.bytes, block.value));
      heap.give(block.data);
      blocks.pop_back();
    } else if (drawn == 14) {
      heap.trim(static_cast<int64_t>(random() % (20 * kMib)));
    } else {
      heap.trim_all();
    }
  }
  for (const auto& block : blocks) {
    ASSERT_TRUE(filled(block.data, block.bytes, block.value));
    heap.give(block.data);
  }
}

TEST(TensorHeap, KeepsWhatWasWrittenWhateverElseIsTakenAndGiven) {
  TensorHeap heap(1 << 30);
  for (uint32_t seed = 1; seed <= 3; ++seed) use_by_chance(heap, seed, 400);
  heap.trim_all();
  EXPECT_EQ(heap.trim(1 << 30), 0);
  EXPECT_NE(heap.take((1 << 30) - kHeapPage), nullptr) << "nothing is lost to pieces";
}

TEST(TensorHeap, IsForThreads) {
  TensorHeap heap(1 << 30);
  std::vector<std::jthread> threads;
  for (uint32_t seed = 11; seed < 14; ++seed)
    threads.emplace_back([&heap, seed] { use_by_chance(heap, seed, 150); });
}

}  // namespace
}  // namespace tierpilot::swap
