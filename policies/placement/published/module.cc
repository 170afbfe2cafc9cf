#include "policies/placement/published/module.h"

#include <utility>

#include "policies/placement/published/published_learner.h"
#include "policies/placement/published/published_policy.h"

namespace tierpilot {
namespace {

class PublishedModule final : public LearningModule {
 public:
  explicit PublishedModule(const PublishedSettings& settings) : settings_(settings) {}

  // Its batches cost thirty times as much as the dqn's. Its dropout draws from libtorch's
  // generator.
  Traits traits() const override {
    return {.judged = "reward", .learns_always = false, .repeatable_in_threads = false};
  }
  void read(ConfigSection section, const std::filesystem::path&) override {
    settings_ = read_published_settings(section);
  }
  Status check() const override { return validate(settings_); }
  ShownSettings settings() const override {
    return {{"width", static_cast<double>(settings_.network.width)},
            {"layers", static_cast<double>(settings_.network.layers)},
            {"heads", static_cast<double>(settings_.network.heads)},
            {"feed_forward", static_cast<double>(settings_.network.feed_forward)},
            {"dropout", settings_.network.dropout},
            {"gamma", settings_.gamma},
            {"learning_rate", settings_.learning_rate},
            {"train_start", static_cast<double>(settings_.train_start)},
            {"batch", static_cast<double>(settings_.batch)},
            {"batches_per_step", static_cast<double>(settings_.batches_per_step)},
            {"copy_interval", static_cast<double>(settings_.copy_interval)}};
  }
  double epsilon() const override { return settings_.epsilon; }

  Status load(const std::filesystem::path&) override {
    return fail(ErrorCode::kInvalid,
                "policy 'dqn-published' learns from nothing: there are no "
                "files of its weights");
  }
  std::optional<WeightsOrigin> loaded() const override { return std::nullopt; }
  Result<LearningPolicy> start(uint64_t seed, size_t pending_capacity) const override {
    auto mailbox = std::make_shared<Mailbox<PublishedWeights>>();
    auto learner = make_published_learner(settings_, seed, pending_capacity, mailbox);
    return LearningPolicy{make_published_policy(settings_, seed, mailbox), std::move(learner),
                          kNoWeights};
  }
  Result<std::unique_ptr<Policy>> frozen(uint64_t) const override {
    return fail(ErrorCode::kUnavailable, "policy 'dqn-published' has no weights here");
  }

 private:
  PublishedSettings settings_;
};

}  // namespace

PlacementModule published_module(const PublishedSettings& settings) {
  return learning_module(
      {"dqn-published", "the published network of 128 outputs, learning from rewards"}, false,
      std::make_shared<PublishedModule>(settings));
}

}  // namespace tierpilot
