#include "policies/placement/dqn/module.h"

#include <fmt/format.h>

#include <utility>

#include "policies/placement/dqn/dqn_learner.h"
#include "policies/placement/dqn/dqn_policy.h"
#include "policies/placement/dqn/token_net.h"

namespace tierpilot {
namespace {

using WeightsPointer = std::shared_ptr<const WeightsFile>;

std::string described(const std::filesystem::path& file, const Provenance& from) {
  return fmt::format("{}, made by '{}' of Tierpilot {} with seed {}, digest of its settings {}",
                     file.filename().string(), from.command, from.program_version, from.seed,
                     from.config_digest);
}

class DqnModule final : public LearningModule {
 public:
  DqnModule(DqnSettings settings, WeightsPointer loaded)
      : settings_(std::move(settings)), loaded_(std::move(loaded)) {}

  Traits traits() const override { return {.judged = "response", .weights_file = "dqn.weights"}; }
  void read(ConfigSection section, const std::filesystem::path& installed) override {
    settings_ = read_dqn_settings(section, installed);
  }
  Status check() const override { return validate(settings_); }
  ShownSettings settings() const override {
    return {{"width", static_cast<double>(TokenNet::kWidth)},
            {"features", static_cast<double>(kTokenSize)},
            {"gamma", settings_.gamma},
            {"learning_rate", settings_.learning_rate},
            {"train_start", static_cast<double>(settings_.train_start)},
            {"batch", static_cast<double>(settings_.batch)},
            {"copy_interval", static_cast<double>(settings_.copy_interval)}};
  }
  double epsilon() const override { return settings_.epsilon; }

  // Settings that leave no features out say nothing of them: the file's count.
  Status load(const std::filesystem::path& weights) override {
    if (auto read = read_weights(weights); !read) return read;
    if (settings_.features == DqnSettings{}.features) settings_.features = loaded_->features;
    return {};
  }
  std::optional<WeightsOrigin> loaded() const override {
    if (!loaded_) return std::nullopt;
    return WeightsOrigin{loaded_->weights.version, loaded_->provenance};
  }
  Result<LearningPolicy> start(uint64_t seed, size_t pending_capacity) const override {
    if (!loaded_ && !settings_.weights.empty()) {
      DqnModule with_weights(settings_, nullptr);
      if (auto read = with_weights.read_weights(settings_.weights); !read)
        return tl::unexpected(read.error());
      return with_weights.start(seed, pending_capacity);
    }
    auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
    auto learner = std::make_unique<DqnLearner>(settings_, seed, pending_capacity, mailbox);
    if (auto begun = begin(*learner); !begun) return tl::unexpected(begun.error());
    return LearningPolicy{
        make_dqn_policy(settings_, seed, mailbox), std::move(learner),
        loaded_ ? described(loaded_from_, loaded_->provenance) : std::string(kNoWeights)};
  }
  Result<std::unique_ptr<Policy>> frozen(uint64_t seed) const override {
    if (!loaded_) return fail(ErrorCode::kUnavailable, "policy 'dqn' has no weights here");
    DqnSettings settings = settings_;
    settings.epsilon = 0;
    settings.features = loaded_->features;
    auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
    mailbox->put({loaded_, &loaded_->weights});
    return make_dqn_policy(settings, seed, mailbox);
  }

 private:
  Status read_weights(const std::filesystem::path& weights) {
    auto file = load_weights(weights);
    if (!file) return tl::unexpected(file.error());
    loaded_ = std::make_shared<const WeightsFile>(std::move(*file));
    loaded_from_ = weights;
    return {};
  }
  Status begin(DqnLearner& learner) const {
    if (!loaded_) return {};
    if (loaded_->features != settings_.features)
      return fail(ErrorCode::kInvalid,
                  fmt::format("weights {}: they learned from other feature groups than "
                              "dqn.leave_out says: train them anew, or change it",
                              loaded_from_.string()));
    return learner.start_from(loaded_->weights);
  }

  DqnSettings settings_;
  WeightsPointer loaded_;
  std::filesystem::path loaded_from_;
};

}  // namespace

PlacementModule dqn_module(DqnSettings settings, std::shared_ptr<const WeightsFile> loaded) {
  return learning_module(
      {"dqn", "least cost, to the task and those after it, as learned from measured tasks"}, true,
      std::make_shared<DqnModule>(std::move(settings), std::move(loaded)));
}

}  // namespace tierpilot
