// One rank's training, from where it begins to its end, or until it is asked to stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "job/tierpilot_job.h"
#include "tools/trainer/group.h"
#include "tools/trainer/model.h"
#include "tools/trainer/state_file.h"

namespace tierpilot::trainer {

struct TrainingPlan {
  Problem problem;
  uint64_t steps = 150;
  double rate = 0.05;                  // of learning
  std::chrono::milliseconds pace{0};   // a step takes this long at least
  std::filesystem::path state_file{};  // of rank 0; empty: nothing is saved
  // Beside what the node asks for; nothing: only that, and at the end.
  std::optional<std::chrono::milliseconds> save_every{};
};

// What a saved state must agree with: all that the result follows from but the number of steps.
std::string training_in_words(const TrainingPlan& plan);

struct TrainingEnd {
  uint64_t began_at = 0, step = 0;
  std::optional<std::string> stopped{};  // why it ended before its last step
  double loss = 0;                       // over all samples
};

class Training {
 public:
  using Interrupted = std::function<std::optional<std::string>()>;
  using Measures = std::function<std::map<std::string, double>()>;
  using Stepped = std::function<void(uint64_t step, float loss)>;

  // `interrupted`: why this rank is to stop, beside what its node says; nothing: go on. `measures`:
  // what its node is told of each step beside the loss. `stepped`: called after each step.
  Training(
      const TrainingPlan& plan, Group& group, Job& job, Interrupted interrupted,
      Measures measures = [] { return std::map<std::string, double>(); },
      Stepped stepped = [](uint64_t, float) {});

  // Goes on from what another run has saved, on each rank.
  Status resume(const std::filesystem::path& file);
  uint64_t step() const { return state_.step; }
  Result<TrainingEnd> run();

 private:
  Status step_once();
  Status given_up(std::string_view why);
  void descend(std::span<const float> gradient);
  std::optional<std::string> asked_to_stop();
  bool time_to_save();
  Status save();

  const TrainingPlan plan_;
  Group& group_;
  Job& job_;
  Interrupted interrupted_;
  Measures measures_;
  Stepped stepped_;
  Model model_;
  TrainingState state_;        // its weights are the model's, and in it only while it is saved
  std::vector<float> shared_;  // the gradient, the loss and how many ranks were asked to stop
  std::optional<std::string> stopped_;
  uint64_t saved_step_ = 0;
  std::chrono::steady_clock::time_point saved_at_;
};

}  // namespace tierpilot::trainer
