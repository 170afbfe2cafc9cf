#include "policies/sharing/predict/jobs/job_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/job_predictor.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/jobs/job_parts.h"
#include "policies/sharing/predict/jobs/job_rivals.h"
#include "policies/sharing/predict/mebibyte.h"

namespace tierpilot::sharing {
namespace {

constexpr double kRunGoal = 0.25;

using Rows = std::vector<MeasuredTraining>;

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
    for (const auto& name : predictor_names())
      if (sums_.contains(name)) scores.push_back(score(split, name));
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
  const char* name_on_gpu;
  double goal;  // of cores
  double (*measured)(const MeasuredTraining&);
  double (*middle)(const JobPrediction&);
  double (*upper)(const JobPrediction&);
  Sees published_sees = Sees::kCard;
};

double run_s(const MeasuredTraining& row) {
  return row.iteration_s * static_cast<double>(std::max<uint64_t>(row.card.job->iterations, 1));
}

const Target kTargets[]{
    {"utilisation of a core, percent", "utilisation of a GPU, percent", kUtilisationGoal,
     [](const MeasuredTraining& row) { return row.utilisation_milli / 10; },
     [](const JobPrediction& said) { return said.milli / 10.0; },
     [](const JobPrediction& said) { return said.milli_upper / 10.0; }},
    {"memory, MiB", "memory of a GPU, MiB", 0,
     [](const MeasuredTraining& row) { return row.memory_bytes / kMib; },
     [](const JobPrediction& said) { return said.memory_bytes / kMib; },
     [](const JobPrediction& said) { return static_cast<double>(said.memory_upper_bytes) / kMib; }},
    {"run time, seconds", "run time on a GPU, seconds", kRunGoal, run_s,
     [](const JobPrediction& said) { return said.run_s; },
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

JobModel fitted(const Rows& rows) {
  if (!rows.front().gpu) return fit_job_model(rows);
  JobModel model;
  model.gpu = fit_gpu_model(rows);
  return model;
}

EngineFeatures engine_of(const MeasuredTraining& row, const JobModel& model) {
  if (row.gpu) return {.engine = "gpu", .gpu = *row.gpu, .host_speed = host_speed(*model.gpu, row)};
  return {.engine = "cpu", .relative_speed = model.calibration_s / row.calibration_s};
}

void test_default(const Part& part, TrainingGroup group,
                  std::array<Tested, std::size(kTargets)>& tested) {
  const auto model = part.model ? part.model : std::make_shared<const JobModel>(fitted(part.train));
  const JobPredictor predictor(model);
  for (const auto& row : part.test) {
    const auto said = predictor.predict(row.card, engine_of(row, *model));
    for (size_t t = 0; t < std::size(kTargets); ++t) {
      const auto& target = kTargets[t];
      const double measured = target.measured(row);
      tested[t].errors.add("default", group(row),
                           std::log1p(target.middle(said)) - std::log1p(measured));
      tested[t].placed.add(target.upper(said), measured);
    }
  }
}

void test_rivals(const Part& part, TrainingGroup group, const Target& target, Errors& errors) {
  const auto wanted = log_targets(part.test, target);
  const auto all =
      rivals_say(part.train, log_targets(part.train, target), part.test, target.published_sees);
  for (const auto& [name, said] : all)
    for (size_t i = 0; i < said.size(); ++i)
      errors.add(name, group(part.test[i]), said[i] - wanted[i]);
}

void run_parts(const Parts& parts, Results& results, const std::function<void()>& done) {
  std::array<Tested, std::size(kTargets)> tested;
  for (const auto& part : parts.parts) {
    test_default(part, parts.group, tested);
    for (size_t t = 0; t < std::size(kTargets) && !part.model; ++t)
      test_rivals(part, parts.group, kTargets[t], tested[t].errors);
    done();
  }
  for (size_t t = 0; t < std::size(kTargets); ++t) {
    for (auto& score : tested[t].errors.scores(parts.name))
      results[t].scores.push_back(std::move(score));
    results[t].placed.push_back(tested[t].placed.score(parts.name));
  }
}

Rows rows_on(const TrainingTable& table, bool on_gpu) {
  Rows rows;
  for (const auto& row : table.rows)
    if (row.gpu.has_value() == on_gpu) rows.push_back(row);
  return rows;
}

}  // namespace

nlohmann::ordered_json installed_json(const TrainingTable& table,
                                      const std::shared_ptr<const JobModel>& model) {
  const JobPredictor predictor(model);
  size_t tested = 0, known = 0, unlike = 0;
  std::string first_unlike;
  for (const auto& row : table.rows) {
    known += is_known_to(*model, row);
    if (!is_new_to(*model, row)) continue;
    ++tested;
    const auto said = predictor.predict(row.card, engine_of(row, *model));
    if (said.unlike && unlike++ == 0) first_unlike = said.why;
  }
  nlohmann::ordered_json value{
      {"tested_rows", tested}, {"known_rows", known}, {"unlike_rows", unlike}};
  if (unlike > 0) value["first_unlike"] = first_unlike;
  return value;
}

nlohmann::ordered_json study_trainings(const TrainingTable& table, const TrainingTable* train,
                                       const Progress& progress, const Installed* installed) {
  std::array<Rows, 2> rows{rows_on(table, false), rows_on(table, true)};
  std::array<std::vector<Parts>, 2> all;
  double wanted = 0, ended = 0;
  for (size_t on_gpu = 0; on_gpu < rows.size(); ++on_gpu) {
    const auto& own = rows[on_gpu];
    if (own.empty()) continue;
    if (installed) all[on_gpu] = parts_by(own, *installed);
    for (auto& parts : train ? parts_beside(own, rows_on(*train, on_gpu == 1)) : parts_of(own))
      all[on_gpu].push_back(std::move(parts));
    for (const auto& parts : all[on_gpu]) wanted += static_cast<double>(parts.parts.size());
  }
  nlohmann::ordered_json studies = nlohmann::ordered_json::array();
  for (size_t on_gpu = 0; on_gpu < rows.size(); ++on_gpu) {
    Results results;
    for (const auto& parts : all[on_gpu])
      run_parts(parts, results, [&] {
        if (progress) progress(++ended / wanted);
      });
    for (size_t t = 0; t < std::size(kTargets) && !all[on_gpu].empty(); ++t) {
      Study study{.target = on_gpu ? kTargets[t].name_on_gpu : kTargets[t].name,
                  .measure = Measure::kRootMeanSquareLog,
                  .rows = std::vector<Row>(rows[on_gpu].size()),
                  .goal = on_gpu ? 0 : kTargets[t].goal};
      studies.push_back(study_json(study, results[t]));
    }
  }
  return studies;
}

}  // namespace tierpilot::sharing
