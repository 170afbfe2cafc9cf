// Trainings of others, foretold by what is installed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/jobs/job_model.h"

namespace tierpilot::sharing {
namespace {

const std::filesystem::path kMeasured = MEASURED;

std::string weights() {
  std::ifstream file(kMeasured / "../../weights/job-predictor.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<Installed> read_model(const std::string& text) {
  auto model = read_job_model(text);
  if (!model) return tl::unexpected(model.error());
  return Installed{std::make_shared<const JobModel>(std::move(*model)), {}};
}

Result<Installed> weights_alone() {
  return read_model(weights());
}

Result<Installed> with_tables() {
  auto installed = weights_alone();
  auto table = CsvTable::open(kMeasured / "trainings.csv").value();
  installed->tables = read_trainings(table).value().rows;
  return installed;
}

// Rows of these architectures, called otherwise where that is wanted.
std::filesystem::path measured_as(const std::string& from,
                                  const std::set<std::string>& architectures,
                                  const std::string& prefix) {
  const auto path = std::filesystem::path(testing::TempDir()) / "sharing-installed.csv";
  std::ifstream measured(kMeasured / from);
  std::ofstream own(path);
  std::string line;
  std::getline(measured, line);
  own << line << '\n';
  while (std::getline(measured, line))
    if (architectures.contains(line.substr(0, line.find(',')))) own << prefix << line << '\n';
  return path;
}

// The same table, where each row's first such text is another.
std::filesystem::path changed(const std::filesystem::path& table, const std::string& text,
                              const std::string& by) {
  const auto path = table.parent_path() / "sharing-changed.csv";
  std::ifstream in(table);
  std::ofstream out(path);
  for (std::string line; std::getline(in, line); out << line << '\n')
    if (const auto at = line.find(text); at != line.npos) line.replace(at, text.size(), by);
  return path;
}

nlohmann::ordered_json evaluated(const std::filesystem::path& table, const ReadInstalled& read) {
  const auto value = evaluate_predictors(table, {}, {}, read);
  EXPECT_TRUE(value) << value.error().message;
  return value ? *value : nullptr;
}

TEST(InstalledStudy, ThePredictorTellsWhatItWasTrainedOn) {
  const auto model = read_job_model(weights());
  ASSERT_TRUE(model) << model.error().message;
  std::set<std::string> measured;
  auto table = CsvTable::open(kMeasured / "trainings.csv").value();
  const auto trainings = read_trainings(table).value();
  for (const auto& row : trainings.rows) measured.insert(row.architecture);
  EXPECT_EQ(model->architectures, measured) << "train it anew";
  ASSERT_TRUE(model->gpu);
  EXPECT_FALSE(model->gpu->architectures.empty());
  const auto again = read_job_model(job_model_json(*model).dump());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->architectures, model->architectures);
  EXPECT_EQ(again->gpu->architectures, model->gpu->architectures);
}

TEST(InstalledStudy, OneArchitectureThatItDoesNotKnowIsTested) {
  const auto value = evaluated(measured_as("trainings.csv", {"gru"}, "other_"), weights_alone);
  EXPECT_EQ(value["installed"],
            (nlohmann::ordered_json{{"tested_rows", 23}, {"known_rows", 0}, {"unlike_rows", 0}}));
  ASSERT_EQ(value["studies"].size(), 3u);
  for (const auto& study : value["studies"]) {
    ASSERT_EQ(study["scores"].size(), 1u) << study;
    EXPECT_EQ(study["scores"][0]["split"], "installed");
    EXPECT_EQ(study["scores"][0]["tested"], 23);
    ASSERT_EQ(study["placed"].size(), 1u);
  }
  EXPECT_EQ(value["studies"][0]["goal"], 0.154);
  EXPECT_EQ(value["studies"][2]["goal"], 0.25);
}

// Another writing of a name that it knows is no news.
TEST(InstalledStudy, WhatItKnowsItKnowsByAnyWriting) {
  const auto value =
      evaluated(changed(measured_as("trainings.csv", {"gru"}, ""), "gru,", " GRU,"), weights_alone);
  EXPECT_EQ(value["installed"]["known_rows"], 23);
}

TEST(InstalledStudy, SaysOfWhichRowsItWouldNotBeBelieved) {
  const auto table = measured_as("trainings.csv", {"gru"}, "other_");
  const auto value = evaluated(changed(table, ",RMSprop,", ",Lion,"), weights_alone);
  EXPECT_GT(value["installed"]["unlike_rows"], 0);
  EXPECT_LT(value["installed"]["unlike_rows"], 23);
  EXPECT_NE(value["installed"].value("first_unlike", "").find("Lion"), std::string::npos);
}

TEST(InstalledStudy, StandsBeforeWhatTheTableTellsOfItself) {
  const auto value =
      evaluated(measured_as("trainings.csv", {"mlp", "lenet", "elman"}, "other_"), weights_alone);
  for (const auto& study : value["studies"]) {
    EXPECT_EQ(study["scores"].front()["split"], "installed");
    EXPECT_EQ(study["scores"].back()["split"], "architecture");
    EXPECT_EQ(study["placed"].front()["split"], "installed");
  }
}

TEST(InstalledStudy, WhatItKnowsIsLeftOutAndCounted) {
  const auto value = evaluated(measured_as("trainings.csv", {"gru"}, ""), weights_alone);
  EXPECT_EQ(value["installed"],
            (nlohmann::ordered_json{{"tested_rows", 0}, {"known_rows", 23}, {"unlike_rows", 0}}));
  EXPECT_TRUE(value["studies"].empty());
}

// The four that were set aside, by those of the tables that are left.
TEST(InstalledStudy, WhatItKnowsItsTablesForetellWithoutIt) {
  const auto value = evaluated(
      measured_as("trainings.csv", {"gru", "mixer", "recommender", "unet"}, ""), with_tables);
  ASSERT_EQ(value["studies"].size(), 3u);
  for (const auto& study : value["studies"]) {
    const auto& score = study["scores"][0];
    EXPECT_EQ(score["split"], "installed tables");
    EXPECT_EQ(score["predictor"], "default");
    EXPECT_EQ(score["tested"], 92);
    if (study.contains("goal")) {
      EXPECT_LT(score["error"], study["goal"]) << study["target"];
    }
  }
}

TEST(InstalledStudy, OnAGpuAnArchitectureOrACardMayBeNew) {
  auto value = evaluated(measured_as("trainings-h100.csv", {"gru"}, "other_"), weights_alone);
  ASSERT_EQ(value["studies"].size(), 3u);
  EXPECT_EQ(value["studies"][0]["scores"][0]["split"], "installed");
  value = evaluated(measured_as("trainings-h100.csv", {"gru"}, ""), weights_alone);
  EXPECT_EQ(value["installed"]["tested_rows"], 0);
}

TEST(InstalledStudy, APredictorThatDoesNotTellWhatItKnowsIsNotTested) {
  auto saved = nlohmann::json::parse(weights());
  saved.erase("architectures");
  const auto table = measured_as("trainings.csv", {"gru"}, "other_");
  auto value = evaluated(table, [&] { return read_model(saved.dump()); });
  EXPECT_TRUE(value["installed"].is_null());
  EXPECT_NE(value["installed_unavailable"].get<std::string>().find("train it again"),
            std::string::npos);
  value = evaluated(table, [] { return read_model("{}"); });
  EXPECT_TRUE(value["installed"].is_null());
  EXPECT_TRUE(value["installed_unavailable"].is_string());
}

}  // namespace
}  // namespace tierpilot::sharing
