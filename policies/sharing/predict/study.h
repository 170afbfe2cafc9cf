// A question that predictors are compared on: rows that describe, what was measured, and how rows
// are split so that what is tested was never seen: by groups (cards, models, families), never by
// row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

struct Fold {
  std::string held_out;
  std::vector<size_t> train, test;
};

struct Split {
  std::string name;
  std::vector<Fold> folds;  // those without rows to train or test on are not there
};

enum class Measure {
  kRootMeanSquareLog,  // targets are ln(1 + x); the root mean square of differences (RMSLE)
  kMeanAbsolute,
  kRootMeanSquareLn  // as the first, of targets that are ln(x)
};

// What the rows have in common, by row.
struct Grouping {
  std::string name;
  std::vector<std::string> groups;
};

struct Contender {
  std::string name;
  std::function<std::unique_ptr<Regressor>()> make;
};

// Horus (Yeung et al., TPDS 2022), on unseen networks.
inline constexpr double kUtilisationGoal = 0.154;

struct Study {
  std::string target;
  Measure measure = Measure::kMeanAbsolute;
  std::vector<Row> rows;
  std::vector<double> targets;
  std::vector<Split> splits;
  std::vector<Contender> contenders;  // the first is the default
  double goal = 0;                    // of the measure; 0: none
  // Where there are any, the default's upper quantile is judged as well: it is calibrated by
  // leaving out groups of the training part in turn, of the grouping that has the split's name; of
  // the first that has two groups, where that has not.
  std::vector<Grouping> calibration = {};
};

// Called now and then with the share that is done, from 0 to 1.
using Progress = std::function<void(double share)>;

// Each group alone is tested, all others train; of many groups a few are tested together, else it
// would take with them squared.
inline constexpr size_t kMostGroupFolds = 32;
Split leave_each_out(std::string name, const std::vector<std::string>& groups);

}  // namespace tierpilot::sharing
