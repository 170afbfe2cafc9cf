#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/random.h"
#include "base/text/json_text.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/jobs/seen_cards.h"
#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/regressor.h"
#include "tests/unit/sharing/drawn.h"

namespace tierpilot::sharing {
namespace {

// The logarithm of 2 a + 0.1 b, with a column that is hardly ever used.
Drawn costs() {
  Drawn drawn;
  SeededRandom random(4);
  for (int i = 0; i < 300; ++i) {
    const double a = random.log_uniform(0.01, 10), b = random.log_uniform(0.1, 100);
    drawn.rows.push_back({a, b, 0});
    drawn.targets.push_back(std::log(2 * a + 0.1 * b));
  }
  return drawn;
}

TEST(CostSum, FindsWeightsAndGoesOnBeyondWhatItSaw) {
  const auto drawn = costs();
  const auto sum = make_cost_sum({.penalty = 1e-6});
  sum->fit(drawn.rows, drawn.targets);
  EXPECT_LT(root_mean_square(*sum, drawn), 0.02);
  EXPECT_NEAR(sum->predict({1e4, 0, 0}), std::log(2e4), 0.05);
}

TEST(CostSum, AColumnThatWasNeverUsedKeepsASaneWeight) {
  const auto drawn = costs();
  const auto sum = make_cost_sum({.start = 0.5});
  sum->fit(drawn.rows, drawn.targets);
  EXPECT_NEAR(sum->predict({0, 0, 2}), std::log(0.5 * 2), 1e-3);
}

TEST(Perceptron, FindsACurveThatNoLineDoes) {
  Drawn drawn;
  SeededRandom random(2);
  for (int i = 0; i < 400; ++i) {
    const double a = 4 * random.unit() - 2;
    drawn.rows.push_back({a, 7});
    drawn.targets.push_back(a * a);
  }
  const auto perceptron = make_perceptron({});
  perceptron->fit(drawn.rows, drawn.targets);
  EXPECT_LT(root_mean_square(*perceptron, drawn), 0.2);
  const auto line = make_ridge(0);
  line->fit(drawn.rows, drawn.targets);
  EXPECT_GT(root_mean_square(*line, drawn), 0.8);
}

std::vector<std::unique_ptr<Regressor>> kept_kinds() {
  std::vector<std::unique_ptr<Regressor>> all, members;
  all.push_back(make_cost_sum({}));
  all.push_back(make_boosted_trees({.trees = 20}));
  all.push_back(make_ridge(0.1));
  all.push_back(make_perceptron({.hidden = {8}, .epochs = 5}));
  members.push_back(make_stacked(make_cost_sum({}), make_boosted_trees({.trees = 5})));
  members.push_back(make_on_columns({1, 0}, make_cost_sum({})));
  all.push_back(make_average(std::move(members)));
  return all;
}

TEST(SavedRegressor, SaysTheSameWhenItIsReadAgain) {
  const auto drawn = costs();
  for (const auto& regressor : kept_kinds()) {
    regressor->fit(drawn.rows, drawn.targets);
    const auto saved = parse_json<nlohmann::json>(regressor->saved().dump());
    const auto again = read_regressor(saved, 3);
    ASSERT_TRUE(again) << saved.dump();
    for (size_t i = 0; i < drawn.rows.size(); i += 17)
      EXPECT_EQ((*again)->predict(drawn.rows[i]), regressor->predict(drawn.rows[i]));
    EXPECT_FALSE(read_regressor(saved, 1)) << "rows have other columns: " << saved["kind"];
  }
  EXPECT_TRUE(make_constant()->saved().is_null());
}

TEST(SavedRegressor, RefusesTreesThatGoInCirclesAndNestingWithoutEnd) {
  const auto trees = [](const char* text) {
    return read_regressor(
        {{"kind", "boosted trees"}, {"base", 0}, {"trees", parse_json<nlohmann::json>(text)}}, 2);
  };
  EXPECT_TRUE(trees("[[[0, 0.5, 1, 2], [1], [2]]]"));
  EXPECT_FALSE(trees("[[[0, 0.5, 0, 0]]]"));
  EXPECT_FALSE(trees("[[[0, 0.5, 1, 9], [1]]]"));
  EXPECT_FALSE(trees("[[[5, 0.5, 1, 2], [1], [2]]]"));
  EXPECT_FALSE(trees("[[]]"));
  EXPECT_FALSE(trees("[[[\"x\"]]]"));
  nlohmann::json nested{{"kind", "cost sum"}, {"weights", {1}}};
  for (int i = 0; i < 100; ++i) nested = {{"kind", "average"}, {"members", {nested}}};
  EXPECT_FALSE(read_regressor(nested, 1));
  EXPECT_FALSE(read_regressor({{"kind", "cost sum"}, {"weights", {-1}}}, 1));
  EXPECT_FALSE(read_regressor(nullptr, 1));
}

// Rows begin with that; what else a card needs follows.
std::filesystem::path table_of(const std::string& rows) {
  const auto path = std::filesystem::path(testing::TempDir()) / "sharing-trainings.csv";
  std::ofstream file(path);
  file << "architecture,batch,iterations,optimizer,load_s,loads_ahead,threads,"
          "utilisation_milli,memory_bytes,iteration_s,busy_s,calibration_s,"
          "parameters,MatMul.count,MatMul.flops,Brick.count,parameter_bytes,parameter_tensors,"
          "activation_bytes,traffic_bytes,flops,launches\n";
  std::istringstream lines(rows);
  for (std::string line; std::getline(lines, line);) file << line << ",20000,2,80,200,1e6,5\n";
  return path;
}

TEST(TrainingTable, ReadsRowsAndTellsWhatItLeavesOut) {
  auto table =
      CsvTable::open(table_of("mlp,32,100,Adam,0.5,1,1,250,1e6,0.1,0.02,0.004,5000,3,1e6,1\n"
                              "mlp,32,100,Adam,0,0,1,,1e6,0.1,0.1,0.004,5000,3,1e6,1\n"
                              "mlp,0,100,Adam,0,0,1,900,1e6,0.1,0.1,0.004,5000,3,1e6,1\n"
                              "mlp,32,100,Adam,0,0,1,900,1e6,,0.1,0.004,5000,3,1e6,1\n"));
  ASSERT_TRUE(table);
  ASSERT_TRUE(is_training_table(*table));
  const auto trainings = read_trainings(*table);
  ASSERT_TRUE(trainings) << trainings.error().message;
  ASSERT_EQ(trainings->rows.size(), 1U);
  EXPECT_EQ(trainings->skipped, 3U);
  EXPECT_NE(trainings->first_skipped.find(":3: its 'utilisation_milli'"), std::string::npos)
      << trainings->first_skipped;
  const auto& row = trainings->rows.front();
  EXPECT_EQ(row.card.operators.size(), 2U);
  EXPECT_EQ(row.card.operators.at("MatMul").flops, 1e6);
  EXPECT_EQ(row.card.operators.at("Unknown").count, 1U) << "of bricks nobody knows";
  EXPECT_EQ(row.card.job->loading_s(32), 0.5);
  EXPECT_TRUE(row.card.job->loads_ahead);
  EXPECT_EQ(row.utilisation_milli, 250);
}

TEST(TrainingTable, ARowThatIsWrongIsRefusedByFileLineAndFigure) {
  const std::string good = "mlp,32,100,Adam,0.5,1,1,250,1e6,0.1,0.02,0.004,5000,3,1e6,1\n";
  const struct {
    const char *row, *words;
  } wrong[]{{"mlp,32,100,Adam,0,0,1,250,-5,0.1,0.1,0.004,5000,3,1e6,1", "'memory_bytes' is '-5'"},
            {"mlp,32,100,Adam,0,0,1,250,1e300,0.1,0.1,0.004,5000,3,1e6,1", "'memory_bytes'"},
            {"mlp,32,100,Adam,0,0,1,250,1e6,0.1,0.1,0.004,5000,3,1e300,1", "'MatMul.flops'"},
            {"mlp,32,100,Adam,0,0,1,250,1e6,nan,0.1,0.004,5000,3,1e6,1", "'iteration_s' is 'nan'"},
            {"mlp,32,100,Adam,0,0,1,1001,1e6,0.1,0.1,0.004,5000,3,1e6,1", "'utilisation_milli'"},
            {"mlp,many,100,Adam,0,0,1,250,1e6,0.1,0.1,0.004,5000,3,1e6,1", "'batch' is 'many'"},
            {"mlp,32,100,Adam,0,0,1,250,1e6,0.1,0.1,1e-300,5000,3,1e6,1",
             "its calibration_s is '1e-300', and no time of 1e-09 to 1e+09 s was measured"},
            {"mlp,32,100,Adam,0,0,1,250,1e6,1e10,0.1,0.004,5000,3,1e6,1", "iteration_s is '1e10'"},
            {"mlp,32,100,Adam,0,0,1,900,1e6,0.1,0.1,0.004", "18 cells"},
            {"mlp,32,100,Adam,0,0,1,250,1e6,0.1,0.1,0.004,5000,3,1e6,1,7", "23 cells"}};
  for (const auto& [row, words] : wrong) {
    auto table = CsvTable::open(table_of(good + row + "\n" + good));
    ASSERT_TRUE(table);
    const auto trainings = read_trainings(*table);
    ASSERT_FALSE(trainings) << row;
    EXPECT_EQ(trainings.error().code, ErrorCode::kInvalid);
    EXPECT_NE(trainings.error().message.find(".csv:3: "), std::string::npos)
        << trainings.error().message;
    EXPECT_NE(trainings.error().message.find(words), std::string::npos)
        << trainings.error().message;
  }
}

TEST(TrainingTable, AColumnThatIsThereTwiceIsNamed) {
  const auto path = std::filesystem::path(testing::TempDir()) / "sharing-twice.csv";
  std::ofstream(path) << "architecture,batch,Batch,utilisation_milli,iteration_s,busy_s,"
                         "calibration_s,MatMul.count\nmlp,32,64,250,0.1,0.02,0.004,3\n";
  auto table = CsvTable::open(path);
  ASSERT_TRUE(table);
  const auto trainings = read_trainings(*table);
  ASSERT_FALSE(trainings);
  EXPECT_NE(trainings.error().message.find(".csv:1: two columns are called 'Batch'"),
            std::string::npos)
      << trainings.error().message;
}

TEST(TrainingTable, ATableWithoutAWholeRowIsAnError) {
  EXPECT_FALSE(evaluate_predictors(table_of("mlp,32\n"), {}));
}

// Nothing is tested that was trained on.
TEST(TrainingTable, IsTestedByAnotherFileOnWhatThatDoesNotHave) {
  const auto row = [](const char* architecture, int batch) {
    return fmt::format("{},{},100,Adam,0,0,1,900,1e6,{},0.09,0.004,5000,3,1e6,1\n", architecture,
                       batch, 0.1 + batch / 1000.0);
  };
  std::string known, all;
  for (int batch = 1; batch <= 8; ++batch) {
    known += row("mlp", batch);
    all += row("mlp", 2 * batch) + row("lenet", batch);
  }
  const auto train = std::filesystem::path(testing::TempDir()) / "sharing-known.csv";
  std::filesystem::rename(table_of(known), train);
  const auto value = evaluate_predictors(table_of(all), train);
  ASSERT_TRUE(value) << value.error().message;
  std::map<std::string, int> tested;
  for (const auto& score : (*value)["studies"][0]["scores"])
    if (score["predictor"] == "default") tested[score["split"]] = score["tested"];
  EXPECT_EQ(tested, (std::map<std::string, int>{{"files", 8}}));
}

TEST(SeenCards, AnOptimizerThatNobodyMeasuredIsUnlike) {
  ModelCard card{.batch = 1};
  card.operators["MatMul"] = {1, 1, 1, 1, 1, 1};
  for (const auto* const known : {"", "SGD", "SGD+momentum", "Adam", "AdamW", "RMSprop"}) {
    card.job = JobCard{.optimizer = known};
    SeenCards seen;
    seen.add(card);
    EXPECT_EQ(seen.unlike_why(card), "") << known;
    card.job->optimizer = "Lion";
    EXPECT_NE(seen.unlike_why(card).find("'Lion'"), std::string::npos);
  }
}

TEST(CardRows, AreFiniteAndNeverNegative) {
  ModelCard card{.batch = 1};
  card.operators["Recurrent"] = {5, 0, 0, 0, 0, 0};  // more operators than launches
  card.operators["Brick"] = {1, 1e18, 1e18, 1e18, 1e18, 1e18};
  for (const auto& row : {work_row(card), memory_row(card), figures_row(card), published_row(card)})
    for (const double value : row) {
      EXPECT_TRUE(std::isfinite(value));
      EXPECT_GE(value, 0);
    }
  EXPECT_EQ(optimizer_states("SGD"), 0);
  EXPECT_EQ(optimizer_states("Adagrad"), 1);
  EXPECT_EQ(optimizer_states("nobody knows"), 2);
}

}  // namespace
}  // namespace tierpilot::sharing
