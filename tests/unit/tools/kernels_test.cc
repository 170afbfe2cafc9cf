#include "tools/tierload/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>
#include <vector>

namespace tierpilot::tierload {
namespace {

std::vector<uint32_t> random_words(size_t count, uint32_t seed = 1) {
  std::mt19937 engine(seed);
  std::vector<uint32_t> words(count);
  for (auto& word : words) word = engine();
  return words;
}

Region region(std::vector<uint32_t>& words, bool writable = false) {
  return {reinterpret_cast<std::byte*>(words.data()), words.size() * 4, writable};
}

KernelResult run(std::string_view name, std::vector<Region> regions,
                 KernelParameters parameters = {}) {
  auto result = run_kernel(**find_kernel(name), regions, parameters);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(KernelResult{});
}

double unit(uint32_t word) {
  return (word >> 8) / 16777216.0;
}

TEST(Kernels, SumAddsEveryWordOfEveryDatasetInEveryPass) {
  auto a = random_words(10'007), b = random_words(5, 2);
  const uint64_t expected = std::accumulate(a.begin(), a.end(), uint64_t{0}) +
                            std::accumulate(b.begin(), b.end(), uint64_t{0});
  const auto result = run("sum", {region(a), region(b)}, {.passes = 3});
  EXPECT_EQ(result.checksum, 3 * expected);
  EXPECT_EQ(result.read_bytes, 3u * 4 * (10'007 + 5));
  EXPECT_EQ(result.operations.ints, 3.0 * (10'007 + 5));
}

TEST(Kernels, NormIsTheSumOfSquares) {
  auto words = random_words(100'003);
  double expected = 0;
  for (const uint32_t word : words) expected += unit(word) * unit(word);
  EXPECT_NEAR(std::bit_cast<double>(run("norm", {region(words)}).checksum), expected,
              expected * 1e-5);
}

TEST(Kernels, MatmulAgreesWithTheDefinition) {
  constexpr size_t n = 13;
  auto words = random_words(2 * n * n * 3 + 7);  // three pairs and a rest
  double expected = 0;
  for (size_t pair = 0; pair < 3; ++pair) {
    const uint32_t* a = &words[pair * 2 * n * n];
    const uint32_t* b = a + n * n;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        for (size_t k = 0; k < n; ++k) expected += unit(a[i * n + k]) * unit(b[k * n + j]);
  }
  const auto result = run("matmul", {region(words)}, {.size = n});
  EXPECT_NEAR(std::bit_cast<double>(result.checksum), expected, expected * 1e-5);
  EXPECT_EQ(result.operations.floats, 3.0 * 2 * n * n * n);
}

TEST(Kernels, GatherDependsOnTheSeedAndStaysInside) {
  std::vector<uint32_t> ones(1000, 1);
  EXPECT_EQ(run("gather", {region(ones)}, {.size = 5000}).checksum, 5000u);
  auto words = random_words(1000);
  const auto sum = [&](uint64_t seed) {
    return run("gather", {region(words)}, {.size = 100, .seed = seed}).checksum;
  };
  EXPECT_EQ(sum(1), sum(1));
  EXPECT_NE(sum(1), sum(2));
}

TEST(Kernels, GatherReachesEveryWord) {
  for (size_t hit = 0; hit < 64; ++hit) {
    std::vector<uint32_t> probe(64, 0);
    probe[hit] = 1;
    EXPECT_GT(run("gather", {region(probe)}, {.size = 10'000}).checksum, 0u) << hit;
  }
}

TEST(Kernels, SortGivesThePositionWeightedSumOfSortedPieces) {
  std::vector<uint32_t> words{3, 1, 2, 9, 8};
  // pieces {3,1}, {2,9}, {8} -> 1*1+2*3, 1*2+2*9, 1*8
  EXPECT_EQ(run("sort", {region(words)}, {.size = 2}).checksum, 7u + 20 + 8);
  EXPECT_EQ(words[0], 3u) << "the dataset itself is untouched";
}

TEST(Kernels, UpdateRewritesEveryWord) {
  auto words = random_words(999);
  auto expected = words;
  uint64_t sum = 0;
  for (auto& word : expected) sum += word = word * 2654435761u + 5;
  const auto result = run("update", {region(words, true)}, {.seed = 5});
  EXPECT_EQ(words, expected);
  EXPECT_EQ(result.checksum, sum);
  EXPECT_EQ(result.written_bytes, 999u * 4);
}

TEST(Kernels, CopyRepeatsTheSourcesIntoTheLast) {
  std::vector<uint32_t> a{1, 2}, b{3}, target(5);
  const auto result = run("copy", {region(a), region(b), region(target, true)});
  EXPECT_EQ(target, (std::vector<uint32_t>{1, 2, 3, 1, 2}));
  EXPECT_EQ(result.checksum, 9u);
}

TEST(Kernels, EstimatesAreWhatIsCounted) {
  for (const Kernel& kernel : kernels()) {
    auto source = random_words(70'000), target = random_words(70'000);
    std::vector<Region> regions{region(target, true)};
    if (kernel.access == Kernel::Access::kReadThenWrite)
      regions.insert(regions.begin(), region(source));
    auto result = run_kernel(kernel, regions, {.passes = 2});
    ASSERT_TRUE(result) << result.error().message;
    const auto estimate = estimate_operations(kernel, 4 * 70'000, {.passes = 2});
    EXPECT_EQ(result->operations.floats, estimate.floats) << kernel.name;
    EXPECT_EQ(result->operations.ints, estimate.ints) << kernel.name;
    EXPECT_GT(estimate.floats + estimate.ints, 0) << kernel.name;
  }
}

struct Refused {
  std::string_view kernel;
  KernelParameters parameters;
  size_t words;
  bool writable;
  std::string_view cause;
};

TEST(Kernels, RefuseWhatTheyCannotDo) {
  const Refused cases[] = {
      {"sum", {.passes = 0}, 10, false, "passes is 0"},
      {"sum", {.passes = 1'000'000}, 10, false, "must be 1 to 10000"},
      {"sum", {.size = 4}, 10, false, "takes no size"},
      {"sum", {}, 0, false, "has 0 bytes"},
      {"gather", {}, 0, false, "has 0 bytes"},
      {"sort", {.size = 1}, 10, false, "size (words per piece) is 1"},
      {"matmul", {.size = 100'000}, 10, false, "size (matrix edge) is 100000"},
      {"matmul", {.size = 100}, 10, false, "at least 80000 are needed"},
      {"update", {}, 10, false, "not opened for writing"},
      {"copy", {}, 10, true, "needs at least 2 datasets"},
  };
  for (const auto& refused : cases) {
    auto words = random_words(refused.words);
    const std::vector<Region> regions{region(words, refused.writable)};
    const auto result = run_kernel(**find_kernel(refused.kernel), regions, refused.parameters);
    ASSERT_FALSE(result) << refused.kernel << ": " << refused.cause;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
    EXPECT_NE(result.error().message.find(refused.cause), std::string::npos)
        << result.error().message;
  }
}

TEST(Kernels, AnUnknownNameListsTheKnown) {
  const auto kernel = find_kernel("fft");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kNotFound);
  EXPECT_NE(kernel.error().message.find("matmul"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::tierload
