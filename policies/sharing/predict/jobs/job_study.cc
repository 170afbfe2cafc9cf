#include "policies/sharing/predict/jobs/job_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/job_predictor.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/jobs/job_rivals.h"

namespace tierpilot::sharing {
namespace {

constexpr double kUtilisationGoal = 0.154;  // Horus (Yeung et al., TPDS 2022), on unseen networks
constexpr double kRunGoal = 0.25;
constexpr double kMib = 1 << 20;

using Rows = std::vector<MeasuredTraining>;

struct Part {
  Rows train, test;
};
struct Parts {
  std::string name;
  std::vector<Part> parts;
};

struct Sums {
  double squares = 0;
  size_t count = 0;
  double error() const { return std::sqrt(squares / static_cast<double>(count)); }
};

// Differences of logarithms, by predictor and by what was left out.
class Errors {
 public:
  void add(const std::string& predictor, const std::string& group, double difference) {
    auto& sums = sums_[predictor][group];
    sums.squares += difference * difference;
    ++sums.count;
  }
  std::vector<Scored> scores(const std::string& split) const {
    std::vector<Scored> scores;
    for (const auto& name : predictor_names()) scores.push_back(score(split, name));
    return scores;
  }

 private:
  Scored score(const std::string& split, const std::string& name) const {
    Scored scored{split, name, 0, 0, {}, 0};
    Sums all;
    for (const auto& [group, sums] : sums_.at(name)) {
      all.squares += sums.squares;
      all.count += sums.count;
      if (!scored.worst_group.empty() && sums.error() <= scored.worst_error) continue;
      scored.worst_group = group;
      scored.worst_error = sums.error();
    }
    scored.error = all.error();
    scored.tested = all.count;
    return scored;
  }

  std::map<std::string, std::map<std::string, Sums>> sums_;
};

class Under {
 public:
  void add(double placed, double measured) {
    under_ += placed < measured;
    excess_ += std::log1p(placed) - std::log1p(measured);
    ++count_;
  }
  PlacedScore score(const std::string& split) const {
    const auto count = static_cast<double>(count_);
    return {split, static_cast<double>(under_) / count, excess_ / count};
  }

 private:
  size_t under_ = 0, count_ = 0;
  double excess_ = 0;
};

// What was measured, and what the default says, of one target.
struct Target {
  const char* name;
  double goal;
  double (*measured)(const MeasuredTraining&);
  double (*middle)(const JobPrediction&);
  double (*upper)(const JobPrediction&);
  Sees published_sees = Sees::kCard;
};

double run_s(const MeasuredTraining& row) {
  return row.iteration_s * static_cast<double>(std::max<uint64_t>(row.card.job->iterations, 1));
}

const Target kTargets[]{
    {"utilisation of a core, percent", kUtilisationGoal,
     [](const MeasuredTraining& row) { return row.utilisation_milli / 10; },
     [](const JobPrediction& said) { return said.milli / 10.0; },
     [](const JobPrediction& said) { return said.milli_upper / 10.0; }},
    {"memory, MiB", 0, [](const MeasuredTraining& row) { return row.memory_bytes / kMib; },
     [](const JobPrediction& said) { return said.memory_bytes / kMib; },
     [](const JobPrediction& said) { return static_cast<double>(said.memory_upper_bytes) / kMib; }},
    {"run time, seconds", kRunGoal, run_s, [](const JobPrediction& said) { return said.run_s; },
     [](const JobPrediction& said) { return said.run_upper_s; }, Sees::kCardAndUtilisation}};

std::vector<double> log_targets(const Rows& rows, const Target& target) {
  std::vector<double> found;
  for (const auto& row : rows) found.push_back(std::log1p(target.measured(row)));
  return found;
}

using Results = std::array<StudyResult, std::size(kTargets)>;

struct Tested {
  Errors errors;
  Under placed;
};

void test_default(const Part& part, std::array<Tested, std::size(kTargets)>& tested) {
  const auto model = std::make_shared<const JobModel>(fit_job_model(part.train));
  const JobPredictor predictor(model);
  for (const auto& row : part.test) {
    const auto said = predictor.predict(
        row.card, {.engine = "cpu", .relative_speed = model->calibration_s / row.calibration_s});
    for (size_t t = 0; t < std::size(kTargets); ++t) {
      const auto& target = kTargets[t];
      const double measured = target.measured(row);
      tested[t].errors.add("default", row.architecture,
                           std::log1p(target.middle(said)) - std::log1p(measured));
      tested[t].placed.add(target.upper(said), measured);
    }
  }
}

void test_rivals(const Part& part, const Target& target, Errors& errors) {
  const auto wanted = log_targets(part.test, target);
  const auto all =
      rivals_say(part.train, log_targets(part.train, target), part.test, target.published_sees);
  for (const auto& [name, said] : all)
    for (size_t i = 0; i < said.size(); ++i)
      errors.add(name, part.test[i].architecture, said[i] - wanted[i]);
}

void run_parts(const Parts& parts, Results& results) {
  std::array<Tested, std::size(kTargets)> tested;
  for (const auto& part : parts.parts) {
    test_default(part, tested);
    for (size_t t = 0; t < std::size(kTargets); ++t)
      test_rivals(part, kTargets[t], tested[t].errors);
  }
  for (size_t t = 0; t < std::size(kTargets); ++t) {
    for (auto& score : tested[t].errors.scores(parts.name))
      results[t].scores.push_back(std::move(score));
    results[t].placed.push_back(tested[t].placed.score(parts.name));
  }
}

// Without the architectures that are set aside each one is left out in turn.
std::vector<Parts> parts_of(const Rows& rows) {
  Part apart;
  std::set<std::string> names;
  for (const auto& row : rows) {
    const bool is_aside = architectures_set_aside().contains(row.architecture);
    (is_aside ? apart.test : apart.train).push_back(row);
    if (!is_aside) names.insert(row.architecture);
  }
  Parts turns{"architecture", {}};
  for (const auto& name : names) {
    Part part;
    for (const auto& row : apart.train)
      (row.architecture == name ? part.test : part.train).push_back(row);
    if (!part.train.empty()) turns.parts.push_back(std::move(part));
  }
  std::vector<Parts> found;
  if (!turns.parts.empty()) found.push_back(std::move(turns));
  if (!apart.train.empty() && !apart.test.empty())
    found.push_back({"set aside", {std::move(apart)}});
  return found;
}

std::vector<Parts> parts_of(const Rows& rows, const Rows& train) {
  std::set<std::string> known;
  for (const auto& row : train) known.insert(row.architecture);
  Part part{train, {}};
  for (const auto& row : rows)
    if (!known.contains(row.architecture)) part.test.push_back(row);
  if (part.test.empty()) return {};
  return {{"files", {std::move(part)}}};
}

}  // namespace

const std::set<std::string>& architectures_set_aside() {
  static const std::set<std::string> kAside{"gru", "mixer", "recommender", "unet"};
  return kAside;
}

nlohmann::ordered_json study_trainings(const TrainingTable& table, const TrainingTable* train) {
  Results results;
  const auto all = train ? parts_of(table.rows, train->rows) : parts_of(table.rows);
  for (const auto& parts : all) run_parts(parts, results);
  nlohmann::ordered_json studies = nlohmann::ordered_json::array();
  for (size_t t = 0; t < std::size(kTargets) && !all.empty(); ++t) {
    Study study{.target = kTargets[t].name,
                .measure = Measure::kRootMeanSquareLog,
                .rows = std::vector<Row>(table.rows.size()),
                .goal = kTargets[t].goal};
    studies.push_back(study_json(study, results[t]));
  }
  return studies;
}

}  // namespace tierpilot::sharing
