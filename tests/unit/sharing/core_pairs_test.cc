#include "policies/sharing/predict/core_pairs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "tests/unit/sharing/traces.h"

namespace tierpilot::sharing {
namespace {

constexpr const char* kHeader =
    "card,seed,model_a,batch_a,milli_a,memory_bytes_a,traffic_bytes_s_a,alone_a,together_a,"
    "spread_a,model_b,batch_b,milli_b,memory_bytes_b,traffic_bytes_s_b,alone_b,together_b,"
    "spread_b\n";

Result<PairData> from(const std::string& rows) {
  const auto path = std::filesystem::path(testing::TempDir()) / "core-pairs.csv";
  std::ofstream(path) << kHeader << rows;
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  return read_pairs(*table);
}

// Busy ones lose a tenth, idle ones nothing.
std::string pairs(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i)
    rows +=
        fmt::format("one core,{},m{},8,900,{},1e9,100,90,0.01,n{},8,100,2000000,1e8,50,50,0.01\n",
                    i, i % 4, 1'000'000 + i, i % 3);
  return rows;
}

TEST(CorePairs, ThePriorIsFittedToWhatBusyAndIdleTrainingsKeep) {
  const auto data = from(pairs(20));
  ASSERT_TRUE(data) << data.error().message;
  ASSERT_TRUE(tell_use(*data));
  const auto prior = fit_pair_prior(*data);
  ASSERT_TRUE(prior) << prior.error().message;
  const Sharer busy{.milli = 900, .memory_bytes = 1e6, .traffic_bytes_s = 1e9};
  const Sharer idle{.milli = 100, .memory_bytes = 2e6, .traffic_bytes_s = 1e8};
  EXPECT_NEAR(std::exp(prior->ln_kept(busy, idle)), 0.9, 0.03);
  EXPECT_GT(std::exp(prior->ln_kept(idle, busy)), 0.97);
  EXPECT_GT(prior->spreads.pair, 0);
}

TEST(CorePairs, TooFewOrUntoldPairsAreRefused) {
  const auto few = fit_pair_prior(*from(pairs(9)));
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("9 pairs on 'one core'"), std::string::npos);
  auto data = *from(pairs(20));
  data.samples[3].victim.milli = 0;
  const auto untold = fit_pair_prior(data);
  ASSERT_FALSE(untold);
  EXPECT_NE(untold.error().message.find("milli"), std::string::npos);
}

TEST(CorePairs, ARowThatIsWrongIsRefusedByFileAndLine) {
  const std::string good = "one core,1,m,8,900,1e6,1e9,100,90,0.01,n,8,100,2e6,1e8,50,50,0.01\n";
  const struct {
    const char *row, *words;
  } wrong[]{
      {"one core,1,m,8,900,-5,1e9,100,90,0.01,n,8,100,2e6,1e8,50,50,0.01", "'memory_bytes_a'"},
      {"one core,1,m,8,900,1e6,1e9,100,90,0.01,n,8,100,2e6,1e300,50,50,0.01",
       "'traffic_bytes_s_b'"},
      {"one core,1,m,8,900,1e6,1e9,100,90,0.01,n,8,100,2e6,1e8,nan,50,0.01", "'alone_b' is 'nan'"},
      {"one core,1,m,8,5000,1e6,1e9,100,90,0.01,n,8,100,2e6,1e8,50,50,0.01",
       "'milli_a' is '5000', which is no number from 0 to 1000"},
      {"one core,1,m,8,900,1e6,1e9,100,90,0.01,n,8,1000.1,2e6,1e8,50,50,0.01",
       "'milli_b' is '1000.1', which is no number from 0 to 1000"},
      {"one core,1,m,8,900,1e6,1e9,100,90", "9 cells"}};
  for (const auto& [row, words] : wrong) {
    const auto data = from(good + row + "\n");
    ASSERT_FALSE(data) << row;
    EXPECT_NE(data.error().message.find("core-pairs.csv:3: "), std::string::npos)
        << data.error().message;
    EXPECT_NE(data.error().message.find(words), std::string::npos) << data.error().message;
  }
}

// The table that comes with Tierpilot: architectures that were not seen are told better than by the
// median, and the prior is what the installed predictor has.
TEST(CorePairs, TheMeasuredTableTellsMoreThanItsMedian) {
  const std::filesystem::path file = std::filesystem::path(MEASURED) / "pairs.csv";
  const auto value = evaluate_predictors(file, {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["skipped"], 0);
  std::map<std::string, double> errors;
  for (const auto& study : (*value)["studies"])
    if (study["target"] == std::string("kept on ") + kOneCore)
      for (const auto& score : study["scores"])
        if (score["split"] == "model")
          errors[score["predictor"].get<std::string>()] = score["error"].get<double>();
  ASSERT_EQ(errors.size(), 5U);
  EXPECT_LT(errors.at("default"), errors.at("median"));
  EXPECT_LT(errors.at("default"), 0.05);
}

// The mean of published pairs is written down: here is where it comes from.
TEST(PublishedMean, IsTheMeanLossOfPublishedPairsBeyondHalfTheirSpeed) {
  const auto file = kTraces / "s3_gavel_pairs.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here";
  auto table = CsvTable::open(file);
  const auto data = read_pairs(*table);
  ASSERT_TRUE(data) << data.error().message;
  double sum = 0;
  for (const auto& sample : data->samples) sum += std::log(std::min(1.0, 2 * sample.retained));
  EXPECT_NEAR(sum / static_cast<double>(data->samples.size()), published_pair_mean().ln, 0.003);
}

TEST(CorePairs, ThePriorIsKeptWithThePredictor) {
  std::ifstream installed(std::filesystem::path(MEASURED) / "../../weights/job-predictor.json");
  const std::string text{std::istreambuf_iterator<char>(installed), {}};
  auto model = read_job_model(text);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(model->pairs);
  auto table = CsvTable::open(std::filesystem::path(MEASURED) / "pairs.csv");
  const auto fitted = fit_pair_prior(*read_pairs(*table));
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(model->pairs->ln, fitted->ln, 1e-9) << "train it anew, with --pairs";
  auto broken = parse_json<nlohmann::json>(text);
  broken["pairs"]["spreads"] = {1};
  EXPECT_FALSE(read_job_model(broken.dump()));
  broken.erase("pairs");
  EXPECT_FALSE(read_job_model(broken.dump())->pairs);
}

}  // namespace
}  // namespace tierpilot::sharing
