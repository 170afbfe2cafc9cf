// What a training job will use of an engine and for how long, from its model card.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/sharing/card/model_card.h"
#include "policies/sharing/gpu_features.h"
#include "policies/sharing/interference/pair_prior.h"

namespace tierpilot::sharing {

struct JobPrediction {
  uint32_t milli = 0;               // of one core or GPU that is fully used: 1000
  uint32_t milli_upper = 0;         // what 95 % of jobs stay below
  double memory_bytes = 0;          // beyond the bare interpreter; of a GPU all that it has there
  uint64_t memory_upper_bytes = 0;  // what 99.5 % of jobs stay below
  double run_s = 0;                 // of all iterations; 0 where the card tells of none
  double run_upper_s = 0;           // what 95 % of jobs stay below
  double traffic_bytes_s = 0;       // of tensors, per second that it keeps a unit busy
  bool unlike = false;              // unlike all it was trained on: take the user's share
  std::string why;                  // it is unlike
};

struct EngineFeatures {
  std::string engine;  // "cpu", "gpu"
  double cores_per_unit = 1;
  // Of this core against the training machine's, of this GPU against what its kind is thought to
  // do; 1 where not known.
  double relative_speed = 1;
  GpuFeatures gpu{};
  double host_speed = 1;  // of the core beside a GPU against those it was trained with
};

struct JobModel;

// The default predictor, trained by `tierctl predictor train`. A job of several threads counts as
// one that uses them all evenly. Copies share what was read; predict() may run in several threads.
class JobPredictor {
 public:
  // kInvalid: no such file, or one of another version.
  static Result<JobPredictor> read(std::string_view json);
  explicit JobPredictor(std::shared_ptr<const JobModel> model);

  // What trainings keep of their speed beside each other; null: no pairs were trained on.
  const PairPrior* pair_prior() const;

  // Float32 operations per second of the core it was trained on, as nodes measure theirs; 0: not
  // known.
  double float32_ops_per_s() const;

  // The same of the cores beside the GPUs that it was trained on.
  double gpu_host_ops_per_s() const;

  // That were measured; none: nothing is known of any GPU.
  const std::vector<GpuFeatures>& gpus() const;

  JobPrediction predict(const ModelCard& card, const EngineFeatures& engine) const;

 private:
  std::shared_ptr<const JobModel> model_;
};

}  // namespace tierpilot::sharing
