// Tables of measurements that users pass on, and what was trained on them.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/table/csv_table.h"
#include "policies/sharing/predict/estimator_data.h"
#include "policies/sharing/predict/job_predictor.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "policies/sharing/predict/perceptron_data.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;
using namespace tierpilot::sharing;

FUZZ(predictor_table) {
  auto table = CsvTable::open(fuzz::file_of(bytes));
  if (!table) return;
  if (is_pair_table(*table)) {
    if (const auto data = read_pairs(*table))
      for (const auto& pair : data->samples)
        fuzz::promise(std::isfinite(pair.retained) && pair.retained > 0, "something is kept");
  } else if (is_estimator_table(*table)) {
    if (const auto data = read_estimators(*table))
      for (const auto& row : data->rows)
        for (const double figure : row) fuzz::promise(std::isfinite(figure), "features are finite");
  } else if (is_perceptron_table(*table)) {
    (void)read_perceptrons(*table);
  } else if (is_training_table(*table)) {
    if (const auto data = read_trainings(*table))
      for (const auto& row : data->rows)
        fuzz::promise(std::isfinite(row.busy_s) && row.busy_s >= 0 &&
                          std::isfinite(row.memory_bytes) && row.card.batch > 0,
                      "trainings are finite");
  }
}

// One that is read foretells numbers, whatever stands in it.
FUZZ(job_predictor) {
  const auto predictor = JobPredictor::read(bytes);
  if (!predictor) return;
  const auto model = read_job_model(bytes);
  const auto written = job_model_json(*model);
  const auto again = read_job_model(written.dump());
  fuzz::promise(again && job_model_json(*again) == written,
                "a predictor that is read and written is the same predictor");
  ModelCard card{.batch = 8,
                 .input_elements = 64,
                 .parameters = 4e3,
                 .parameter_bytes = 16e3,
                 .activation_bytes = 1e6,
                 .traffic_bytes = 3e6,
                 .flops = 5e8,
                 .depth = 12,
                 .launches = 20};
  card.operators["MatMul"] = {2, 1024, 2048, 640, 4000, 5e8};
  card.job = JobCard{.iterations = 100, .optimizer = "Adam", .threads = 1};
  for (const auto& gpu : predictor->gpus()) (void)predictor->predict(card, {"gpu", 1, 1, gpu});
  const auto told = predictor->predict(card, {"cpu"});
  fuzz::promise(std::isfinite(told.run_s) && std::isfinite(told.memory_bytes) &&
                    std::isfinite(told.run_upper_s) && told.run_s >= 0 && told.milli <= 1000,
                "predictions are numbers");
}
