#include "policies/placement/published/published_learner.h"

#include <optional>
#include <utility>

#include "policies/placement/published/trainer.h"

namespace tierpilot {
namespace {

class PublishedLearner final : public Learner {
 public:
  PublishedLearner(const PublishedSettings& settings, uint64_t seed, size_t pending_capacity,
                   std::shared_ptr<Mailbox<PublishedWeights>> mailbox)
      : settings_(settings),
        seed_(seed),
        mailbox_(std::move(mailbox)),
        pending_(pending_capacity) {}

  void begin() override {
    if (trainer_) return;
    trainer_.emplace(settings_, seed_);
    mailbox_->put(trainer_->published());
  }

  void decided(uint64_t id, const View& view, size_t node) override {
    if (!pending_.contains(id)) ++decisions_;
    const FeatureSettings features = settings_.features();
    if (node >= view.nodes.size() || view.nodes[node].slot >= features.slots) return;
    pending_.decided(id, std::make_shared<const Observation>(observe(view, features)),
                     view.nodes[node].slot);
    take_complete();
  }
  // S1 learns from the service of the data alone. What was served has its reward and only waits for
  // the next decision.
  void told(uint64_t id, const Outcome& outcome) override {
    if (const auto* served = std::get_if<DataServed>(&outcome)) {
      pending_.outcome(id, served->reward.reward);
      take_complete();
    } else if (const auto* entry = pending_.find(id); entry && !entry->reward) {
      pending_.abandon(id);
    }
  }

  bool ready() const override { return trainer_ && trainer_->ready(); }
  void train_batch() override { trainer_->train_batch(); }
  void copy_weights() override {
    begin();
    copied_at_ = decisions_;
    copy_due_ = true;
    copy_weights_if_due();
  }
  // A copy that fell due while nothing was new is made up for after the next batch.
  void copy_weights_if_due() override {
    if (decisions_ - copied_at_ >= settings_.copy_interval) {
      copied_at_ = decisions_;
      copy_due_ = true;
    }
    if (!copy_due_ || !trainer_ || !trainer_->changed()) return;
    mailbox_->put(trainer_->publish());
    copy_due_ = false;
  }

  LearnerCounters counters() const override {
    LearnerCounters now;
    now.decisions = decisions_;
    now.experiences = experiences_;
    now.pending = pending_.size();
    now.replay_capacity = settings_.replay_capacity;
    now.weights_version = 1;
    if (!trainer_) return now;
    now.replay_size = trainer_->replay().size();
    now.batches = trainer_->batches();
    now.training_steps = trainer_->steps();
    now.weights_version = trainer_->published()->version;
    now.loss = trainer_->loss();
    return now;
  }

  std::string save() const override {
    PublishedCheckpoint checkpoint;
    trainer_->save_to(checkpoint);
    checkpoint.progress.decisions = decisions_;
    checkpoint.progress.experiences = experiences_;
    checkpoint.experiences.pending = pending_.snapshot();
    return encode_checkpoint(checkpoint);
  }
  Status restore(std::string_view saved) override {
    auto checkpoint = decode_checkpoint(saved);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    begin();
    if (Status status = trainer_->restore(*checkpoint); !status) return status;
    decisions_ = copied_at_ = checkpoint->progress.decisions;
    experiences_ = checkpoint->progress.experiences;
    pending_.restore(std::move(checkpoint->experiences.pending));
    mailbox_->put(trainer_->published());
    return {};
  }
  std::string save_weights() const override {
    PublishedCheckpoint checkpoint;
    trainer_->save_to(checkpoint);
    checkpoint.experiences.replay.clear();
    return encode_checkpoint(checkpoint);
  }
  Status restore_weights(std::string_view saved) override {
    const auto checkpoint = decode_checkpoint(saved);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    begin();
    if (Status status = trainer_->go_back_to(*checkpoint); !status) return status;
    mailbox_->put(trainer_->published());
    return {};
  }

 private:
  void take_complete() {
    for (PublishedExperience& experience : pending_.take_complete())
      experiences_ += trainer_->add(std::move(experience));
  }

  PublishedSettings settings_;
  uint64_t seed_;
  std::shared_ptr<Mailbox<PublishedWeights>> mailbox_;
  PendingTable<Observation> pending_;
  std::optional<PublishedTrainer> trainer_;  // none before begin()
  uint64_t decisions_ = 0;
  uint64_t copied_at_ = 0;
  bool copy_due_ = false;
  uint64_t experiences_ = 0;
};

}  // namespace

std::unique_ptr<Learner> make_published_learner(
    const PublishedSettings& settings, uint64_t seed, size_t pending_capacity,
    std::shared_ptr<Mailbox<PublishedWeights>> mailbox) {
  return std::make_unique<PublishedLearner>(settings, seed, pending_capacity, std::move(mailbox));
}

}  // namespace tierpilot
