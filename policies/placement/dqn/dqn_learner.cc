#include "policies/placement/dqn/dqn_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/overloaded.h"
#include "policies/learning/envelope.h"
#include "policies/placement/dqn/token_codec.h"

namespace tierpilot {
namespace {

constexpr EnvelopeKind kKind{"TPDQNLN1", 2, "dqn learner checkpoint"};

double bounded_cost(double cost_s, double scale_s) {
  return std::clamp(cost_s / scale_s, -static_cast<double>(kWorst), static_cast<double>(kWorst));
}

}  // namespace

DqnLearner::DqnLearner(const DqnSettings& settings, uint64_t seed, size_t pending_capacity,
                       std::shared_ptr<Mailbox<DqnWeights>> mailbox)
    : settings_(settings),
      mailbox_(std::move(mailbox)),
      pending_(pending_capacity),
      own_(settings, seed, [this](const auto& experience) { return own_target(experience); }),
      returns_(settings.return_steps, settings.gamma, settings.replay_capacity) {
  publish(1);
}

DqnLearner::Sight DqnLearner::remember(const View& view, size_t node) const {
  auto tokens = std::make_shared<TokenSet>();
  make_tokens(view, settings_.features, others_, settings_.tokens, *tokens, node);
  const auto token = std::find(tokens->nodes.begin(), tokens->nodes.end(), node);
  if (token == tokens->nodes.end()) return {};
  const auto action = static_cast<size_t>(token - tokens->nodes.begin());
  if (!std::isfinite(tokens->prior[action]) || !std::isfinite(tokens->scale_s)) return {};
  return {std::move(tokens), action};
}

void DqnLearner::decided(uint64_t id, const View& view, size_t node) {
  if (!pending_.contains(id)) ++progress_.decisions;
  if (Sight sight = remember(view, node); sight.seen)
    pending_.decided(id, std::move(sight.seen), sight.action);
  take_complete();
}

// It learns from what tasks took, and not from rewards.
void DqnLearner::told(uint64_t id, const Outcome& outcome) {
  std::visit(Overloaded{[](const DataServed&) {},
                        [&](const Finished& end) { finished(id, end.response_s); },
                        [&](Abandoned) { pending_.abandon(id); }},
             outcome);
}

void DqnLearner::finished(uint64_t id, double response_s) {
  const auto* entry = pending_.find(id);
  if (!entry || !(response_s >= 0) || !std::isfinite(response_s)) return;
  pending_.outcome(id, -bounded_cost(response_s, entry->seen->scale_s));
  take_complete();
}

void DqnLearner::take_complete() {
  for (TokenExperience& experience : pending_.take_complete()) {
    trained_on_.widen(experience.seen->features);
    returns_.add(experience);
    progress_.experiences += own_.add(std::move(experience));
  }
}

void DqnLearner::train_batch() {
  if (settings_.gamma > 0 && settings_.double_dqn) selecting_ = weights();
  own_.train_batch();
  ++progress_.batches;
}

// The network learns what the estimate does not know.
float DqnLearner::own_target(const TokenExperience& experience) {
  const TokenSet& seen = *experience.seen;
  const Returns::Sum sum = returns_.from(experience);
  float target = static_cast<float>(sum.measured) - seen.prior[experience.action];
  if (sum.rest) target += static_cast<float>(sum.weight) * next_value(*sum.rest);
  return std::clamp(target, -kWorst, kWorst);
}

// Double DQN (van Hasselt et al., AAAI 2016): one network selects, the other one values. Decisions
// are taken by what others pay, too; but that is no part of what is measured.
float DqnLearner::next_value(const TokenSet& next) {
  const std::vector<float>& values = valuer_.values(*published_, next);
  const std::vector<float>& selecting =
      settings_.double_dqn ? selector_.values(selecting_, next) : values;
  const auto best = std::max_element(selecting.begin(), selecting.end()) - selecting.begin();
  return values[static_cast<size_t>(best)] - next.others[static_cast<size_t>(best)];
}

void DqnLearner::copy_weights() {
  copied_at_decision_ = progress_.decisions;
  copy_due_ = true;
  copy_weights_if_due();
}

// A copy that fell due while nothing was new is made up for after the next batch.
void DqnLearner::copy_weights_if_due() {
  if (progress_.decisions - copied_at_decision_ >= settings_.copy_interval) {
    copied_at_decision_ = progress_.decisions;
    copy_due_ = true;
  }
  if (!copy_due_ || progress_.batches == copied_at_batch_) return;
  publish(progress_.weights_version + 1);
  copy_due_ = false;
}

void DqnLearner::publish(uint64_t version) {
  progress_.weights_version = version;
  published_ = std::make_shared<const DqnWeights>(weights());
  copied_at_batch_ = progress_.batches;
  mailbox_->put(published_);
}

DqnWeights DqnLearner::weights() const {
  DqnWeights now;
  now.version = progress_.weights_version;
  now.trained_on = trained_on_;
  // A diverged network keeps its last finite weights.
  if (!now.own.set_weights(own_.trainee().weights()) && published_) now.own = published_->own;
  now.others = others_;
  return now;
}

Status DqnLearner::start_from(const DqnWeights& weights) {
  if (Status status = own_.trainee().set_weights(weights.own.weights()); !status) return status;
  others_ = weights.others;
  trained_on_ = weights.trained_on;
  publish(weights.version);
  return {};
}

LearnerCounters DqnLearner::counters() const {
  LearnerCounters now;
  now.decisions = progress_.decisions;
  now.experiences = progress_.experiences;
  now.pending = pending_.size();
  now.replay_size = own_.replay().size();
  now.replay_capacity = own_.replay().capacity();
  now.batches = now.training_steps = progress_.batches;
  now.weights_version = progress_.weights_version;
  now.loss = own_.loss();
  return now;
}

std::string DqnLearner::save() const {
  TokenMemory memory;
  memory.features = settings_.features;
  memory.progress = progress_;
  memory.progress.loss = own_.loss();
  memory.progress.credit_batches = own_.credit_batches();
  const DqnWeights now = weights();
  memory.own = now.own.weights();
  memory.others = now.others;
  memory.trained_on = trained_on_;
  memory.experiences.replay.assign(own_.replay().entries().begin(), own_.replay().entries().end());
  memory.experiences.pending = pending_.snapshot();
  return seal(kKind, encode_memory(memory));
}

Status DqnLearner::restore(std::string_view saved) {
  const auto body = unseal(kKind, saved);
  if (!body) return tl::unexpected(body.error());
  auto memory = decode_memory(*body);
  if (!memory) return tl::unexpected(memory.error());
  if (memory->features != settings_.features)
    return fail(ErrorCode::kInvalid, "it learned from other features than the settings ask for");
  DqnWeights weights;
  if (Status status = weights.own.set_weights(std::move(memory->own)); !status) return status;
  weights.others = memory->others;
  progress_ = memory->progress;
  weights.version = progress_.weights_version + 1;
  weights.trained_on = memory->trained_on;
  copied_at_decision_ = progress_.decisions;
  returns_.clear();
  for (const TokenExperience& experience : memory->experiences.replay) returns_.add(experience);
  own_.restore(std::move(memory->experiences.replay), progress_.credit_batches);
  pending_.restore(std::move(memory->experiences.pending));
  return start_from(weights);
}

std::string DqnLearner::save_weights() const {
  return encode_weights({weights(), settings_.features, {.command = "learned on line"}});
}

Status DqnLearner::restore_weights(std::string_view saved) {
  auto file = decode_weights(saved);
  if (!file) return tl::unexpected(file.error());
  if (file->features != settings_.features)
    return fail(ErrorCode::kInvalid, "it was trained on other features than the settings ask for");
  own_.forget();
  returns_.clear();
  file->weights.version = progress_.weights_version + 1;
  return start_from(file->weights);
}

}  // namespace tierpilot
