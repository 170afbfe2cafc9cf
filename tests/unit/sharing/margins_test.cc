// Margins that hold for groups which were never seen, and upper figures by them.
#include "policies/sharing/predict/jobs/margins.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "policies/sharing/predict/jobs/upper_figures.h"

namespace tierpilot::sharing {
namespace {

// Errors of a group's rows: what all have in common, and each row's own.
std::vector<double> drawn_group(SeededRandom& random, size_t rows, double common, double own) {
  const auto drawn = [&](double scale) {  // of a long tail
    const double size = -scale * std::log(1 - random.unit());
    return random.unit() < 0.5 ? size : -size;
  };
  const double shared = drawn(common);
  std::vector<double> errors;
  for (size_t i = 0; i < rows; ++i) errors.push_back(shared + drawn(own));
  return errors;
}

Exceeds drawn_groups(SeededRandom& random, size_t groups, size_t rows, double common, double own) {
  Exceeds all;
  for (size_t i = 0; i < groups; ++i)
    all[fmt::format("g{}", i)] = drawn_group(random, rows, common, own);
  return all;
}

struct Missed {
  double by_group = 0, by_row = 0;  // part of rows of new groups beyond a margin
};

// By the margin, and by the quantile of all rows as if each were a group.
Missed missed(size_t groups, double common, double own, double quantile) {
  SeededRandom random(7);
  constexpr int kTables = 400;
  constexpr size_t kRows = 10;
  Missed part;
  for (int i = 0; i < kTables; ++i) {
    const auto known = drawn_groups(random, groups, kRows, common, own);
    Exceeds rows;
    for (const auto& [name, errors] : known)
      rows["all"].insert(rows["all"].end(), errors.begin(), errors.end());
    const double by_group = upper_margin(known, quantile), by_row = upper_margin(rows, quantile);
    for (int unseen = 0; unseen < 20; ++unseen)
      for (const double error : drawn_group(random, kRows, common, own)) {
        part.by_group += error > by_group;
        part.by_row += error > by_row;
      }
  }
  part.by_group /= kTables * 20 * kRows;
  part.by_row /= kTables * 20 * kRows;
  return part;
}

TEST(Margin, HoldsForANewGroupWhoseRowsErrAlike) {
  for (const size_t groups : {10, 23, 60}) {
    const auto part = missed(groups, 1, 0.3, 0.95);
    EXPECT_LE(part.by_group, groups < 19 ? 1 / (groups + 1.0) : 0.05) << groups;
    EXPECT_LT(part.by_group, part.by_row) << groups << ": rows of a group count as one";
    EXPECT_GT(part.by_group, 0.02) << groups << ": it is wider than it has to be";
  }
}

TEST(Margin, HoldsWhereRowsOfAGroupHaveNothingInCommon) {
  const auto part = missed(23, 0, 1, 0.95);
  EXPECT_LE(part.by_group, 0.05);
  EXPECT_GT(part.by_group, 0.02);
}

TEST(Margin, OfFewGroupsRowsTellWhatIsRare) {
  EXPECT_LE(missed(23, 0.1, 1, 0.995).by_group, 0.01);
  SeededRandom random(3);
  const auto known = drawn_groups(random, 23, 20, 0.3, 1);
  double largest = 0;
  for (const auto& [name, errors] : known)
    largest = std::max(largest, *std::max_element(errors.begin(), errors.end()));
  EXPECT_LT(upper_margin(known, 0.995), largest);
  EXPECT_GT(upper_margin(known, 0.995), upper_margin(known, 0.95));
}

TEST(Margin, AGroupOfManyRowsCountsAsOne) {
  SeededRandom random(5);
  auto known = drawn_groups(random, 23, 10, 1, 0.3);
  const double before = upper_margin(known, 0.95);
  auto& group = known.begin()->second;
  for (int doubled = 0; doubled < 6; ++doubled)
    group.insert(group.end(), group.begin(), group.end());
  EXPECT_NEAR(upper_margin(known, 0.95), before, 1e-9);
}

TEST(Margin, OfSingleRowsItIsTheirQuantile) {
  Exceeds one, each;
  for (int i = 1; i <= 99; ++i) {
    one["all"].push_back(i);
    each[fmt::format("g{}", i)] = {static_cast<double>(i)};
  }
  // Of 99 and one that is not known the 95th is exceeded by five.
  EXPECT_DOUBLE_EQ(upper_margin(one, 0.95), 95);
  EXPECT_DOUBLE_EQ(upper_margin(each, 0.95), 95);
}

TEST(Margin, IsNeverBelowZero) {
  EXPECT_EQ(upper_margin({}, 0.95), 0);
  EXPECT_EQ(upper_margin({{"a", {-1, -2}}, {"b", {-3}}}, 0.95), 0);
  EXPECT_EQ(upper_margin({{"a", {}}, {"b", {0.5}}}, 0.95), 0.5);
}

TEST(Folds, LeaveEachGroupOutOnce) {
  const std::vector<std::string> groups{"b", "a", "b", "c", "a"};
  const auto folds = folds_of(groups);
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t j = 0; j < groups.size(); ++j)
      EXPECT_EQ(folds[i] == folds[j], groups[i] == groups[j]) << i << j;
  const auto alone = folds_of({"a", "a", "a"});
  EXPECT_NE(alone[0], alone[1]) << "of one group its rows are left out";
  for (const auto fold : folds_of(std::vector<std::string>(1000, "a")))
    EXPECT_LT(fold, kMostMarginFolds);
}

MeasuredTraining waiting(double busy_s, double load_s, bool ahead) {
  MeasuredTraining row{.architecture = "a"};
  row.card.batch = 1;
  row.card.job = JobCard{.iterations = 1, .load_s = load_s, .loads_ahead = ahead, .threads = 1};
  row.busy_s = busy_s;
  row.iteration_s = ahead ? std::max(busy_s, load_s) : busy_s + load_s;
  row.utilisation_milli = 1000 * busy_s / row.iteration_s;
  row.memory_bytes = 1 << 20;
  return row;
}

// Of architectures of one row each: what was needed of all is enough for all.
TEST(UpperFigures, WithWhatWasNeededAreWhatWasMeasured) {
  for (const bool ahead : {false, true})
    for (const double load_s : {0.0, 0.01, 1.0}) {
      auto row = waiting(0.02, load_s, ahead);
      row.iteration_s *= 1.02;  // it waits a little longer than its card tells
      const SaidUse said{.milli = 300, .step_s = 0.01, .memory_bytes = 1 << 19};
      NeededMargins needed;
      needed.add("a", said, row);
      const auto margins = needed.margins();
      EXPECT_NEAR(upper_iteration_s(said.step_s, row.card, margins.run), row.iteration_s,
                  1e-6 * row.iteration_s);
      EXPECT_NEAR(upper_milli(said.milli, margins.milli),
                  std::max(said.milli, row.utilisation_milli), 1e-6 * said.milli);
      EXPECT_NEAR(upper_memory_bytes(said.memory_bytes, margins.memory), row.memory_bytes, 1);
    }
}

TEST(UpperFigures, OfAJobThatWaitsAreNearerThanOfOneThatComputes) {
  const auto waits = waiting(0.01, 1, true), computes = waiting(0.01, 0, true);
  EXPECT_GT(upper_iteration_s(0.01, waits.card, 0.5), 1.01);
  EXPECT_LT(upper_iteration_s(0.01, waits.card, 0.5), 1.1);
  EXPECT_GT(upper_iteration_s(0.01, computes.card, 0.5), 0.015);
}

TEST(UpperFigures, OfBrokenMarginsAreNumbers) {
  const auto card = waiting(0.01, 1, true).card;
  for (const double margin : {-1e300, 1e300, std::nan("")}) {
    EXPECT_FALSE(std::isnan(upper_milli(100, margin))) << margin;
    EXPECT_FALSE(std::isnan(upper_iteration_s(0.01, card, margin))) << margin;
    EXPECT_GE(upper_memory_bytes(1 << 20, margin), 0) << margin;
  }
}

}  // namespace
}  // namespace tierpilot::sharing
