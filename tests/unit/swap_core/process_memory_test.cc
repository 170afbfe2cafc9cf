// Memory that is given back is taken anew at little cost.
#include "swap/device/process_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace tierpilot::swap {
namespace {

constexpr size_t kBlock = 8 << 20, kBlocks = 8, kPage = 4096;

bool huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string said;
  std::getline(file, said);
  return !said.empty() && said.find("[never]") == std::string::npos;
}

int64_t faults() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

void touch_blocks() {
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(new char[kBlock]);
    std::memset(blocks.back().get(), 1, kBlock);
  }
}

TEST(ProcessMemory, WhatWasGivenBackIsTakenAnewInHugePages) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has its own heap";
#endif
  if (!huge_pages()) GTEST_SKIP() << "the kernel gives no huge pages";
  ProcessMemory memory;
  ProcessMemory::own_freed_memory();
  touch_blocks();
  const auto kept = memory.now();
  memory.give_back();
  EXPECT_LT(memory.now(), kept - static_cast<int64_t>(kBlock * (kBlocks - 1)));
  const auto before = faults();
  touch_blocks();
  // A kernel whose memory is in pieces may give small pages for some.
  EXPECT_LT(faults() - before, static_cast<int64_t>(kBlock * kBlocks / kPage / 2));
}

TEST(ProcessMemory, IsKnownAlsoWhereItBeganWithoutDescriptors) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const ProcessMemory memory;
  const auto without = memory.now();
  setrlimit(RLIMIT_NOFILE, &before);
  const auto now = ProcessMemory().now();
  ASSERT_GT(now, 0);
  EXPECT_GE(without, now / 2) << "nothing known would be no budget";
  EXPECT_NEAR(static_cast<double>(memory.now()), static_cast<double>(now), 64 << 20);
}

}  // namespace
}  // namespace tierpilot::swap
