#include "tools/trainer/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>
#include <thread>

namespace tierpilot::trainer {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr float kMomentum = 0.9f;

Error diverged(uint64_t step) {
  return {
      ErrorCode::kInvalid,
      fmt::format("the loss is no number any more at iteration {}: try a smaller --rate", step)};
}

}  // namespace

std::string training_in_words(const TrainingPlan& plan) {
  const auto& problem = plan.problem;
  return fmt::format("{}, seed {}, {} samples, batches of {}, rate {}",
                     kModelNames[static_cast<size_t>(problem.model)], problem.seed, problem.samples,
                     problem.batch, plan.rate);
}

Training::Training(const TrainingPlan& plan, Group& group, Job& job, Interrupted interrupted,
                   Measures measures, Stepped stepped)
    : plan_(plan),
      group_(group),
      job_(job),
      interrupted_(std::move(interrupted)),
      measures_(std::move(measures)),
      stepped_(std::move(stepped)),
      model_(plan.problem),
      shared_(model_.weights().size() + 2) {
  state_.velocity.resize(model_.weights().size());
}

Status Training::resume(const std::filesystem::path& file) {
  auto saved = load_state(file, training_in_words(plan_), model_.weights().size());
  if (!saved) return tl::unexpected(saved.error());
  state_ = std::move(*saved);
  std::copy(state_.weights.begin(), state_.weights.end(), model_.weights().begin());
  saved_step_ = state_.step;
  return {};
}

Result<TrainingEnd> Training::run() {
  TrainingEnd end{.began_at = state_.step};
  saved_at_ = SteadyClock::now();
  while (state_.step < plan_.steps && !stopped_) {
    const auto begin = SteadyClock::now();
    if (auto status = step_once(); !status) return tl::unexpected(status.error());
    if (time_to_save())
      if (auto status = save(); !status) return tl::unexpected(status.error());
    if (!stopped_) std::this_thread::sleep_until(begin + plan_.pace);
  }
  end.step = state_.step;
  end.stopped = end.step < plan_.steps ? stopped_ : std::nullopt;
  end.loss = model_.loss();
  // Of all samples, and after the last step: a state of no use is not kept.
  if (!std::isfinite(end.loss)) return tl::unexpected(diverged(state_.step));
  if (state_.step != saved_step_)
    if (auto status = save(); !status) return tl::unexpected(status.error());
  // Who leaves early looks to the others like one that failed.
  float here = 1;
  if (auto status = group_.sum({&here, 1}); !status) return tl::unexpected(status.error());
  return end;
}

Status Training::step_once() {
  const size_t weights = model_.weights().size();
  float& loss = shared_[weights];
  float& stops = shared_[weights + 1];
  try {
    loss = model_.add_up(state_.step, group_.place(), {shared_.data(), weights});
  } catch (const std::exception& failure) {
    return given_up(failure.what());
  }
  const auto asked = asked_to_stop();
  stops = asked ? 1 : 0;
  if (auto status = group_.sum(shared_); !status) return status;
  if (!std::isfinite(loss)) return tl::unexpected(diverged(state_.step + 1));
  descend({shared_.data(), weights});
  ++state_.step;
  job_.report({state_.step, plan_.steps, state_.step * plan_.problem.batch, loss, measures_()});
  stepped_(state_.step, loss);
  // They stop after the same step, or those that heard of it later would wait for the others.
  if (stops > 0) stopped_ = asked.value_or("another rank is to end");
  return {};
}

// What was done before is not lost. Libtorch tells behind the first line where in its code it was.
Status Training::given_up(std::string_view why) {
  why = why.substr(0, why.find('\n'));
  auto saved = state_.step == saved_step_ ? Status{} : save();
  return fail(ErrorCode::kUnavailable,
              fmt::format("iteration {} cannot be computed: {}{}", state_.step + 1, why,
                          saved ? "" : "; nor be saved: " + saved.error().message));
}

// The same on each rank, as the gradient is.
void Training::descend(std::span<const float> gradient) {
  const auto weights = model_.weights();
  const auto rate = static_cast<float>(plan_.rate);
  for (size_t i = 0; i < weights.size(); ++i) {
    state_.velocity[i] = kMomentum * state_.velocity[i] + gradient[i];
    weights[i] -= rate * state_.velocity[i];
  }
}

std::optional<std::string> Training::asked_to_stop() {
  auto why = job_.should_stop();
  return why ? why : interrupted_();
}

bool Training::time_to_save() {
  const bool asked = job_.should_checkpoint();  // says no on other ranks than 0
  const bool due = group_.place().rank == 0 && plan_.save_every &&
                   SteadyClock::now() - saved_at_ >= *plan_.save_every;
  return asked || due;
}

// A node that keeps it not is no reason to end: what it kept before is still there.
Status Training::save() {
  if (group_.place().rank != 0 || plan_.state_file.empty()) return {};
  const auto weights = model_.weights();
  state_.weights.assign(weights.begin(), weights.end());
  if (auto status = save_state(plan_.state_file, training_in_words(plan_), state_); !status)
    return status;
  if (job_.connected() && !job_.checkpoint(plan_.state_file.string(), state_.step))
    std::cerr << fmt::format("warning: the node keeps no checkpoint of iteration {}: {}\n",
                             state_.step, job_.checkpoint_error());
  saved_step_ = state_.step;
  saved_at_ = SteadyClock::now();
  return {};
}

}  // namespace tierpilot::trainer
