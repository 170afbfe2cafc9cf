#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "policies/dqn/dqn_learner.h"
#include "policies/dqn/dqn_policy.h"
#include "policies/dqn/token_trainee.h"
#include "policies/estimate.h"
#include "policies/learning/torch_thread.h"

namespace tierpilot {
namespace {

constexpr size_t kAll = 1 << 20;

using ::testing::HasSubstr;

constexpr double kMB = 1e6;

View random_view(size_t nodes, uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator);
  };
  View view;
  const auto data = static_cast<uint64_t>(draw(1, 200) * kMB);
  view.task = {.operations = draw(1e7, 1e10), .data_bytes = data, .writes = draw(0, 1) < 0.2};
  for (size_t i = 0; i < nodes; ++i) {
    NodeState node{.slot = static_cast<uint32_t>(i), .candidate = draw(0, 1) < 0.9, .units = 4};
    node.assigned = static_cast<uint32_t>(draw(0, 8));
    node.running = std::min(node.assigned, node.units);
    node.fast_budget_bytes = 256 << 20;
    node.free_fast_bytes = static_cast<uint64_t>(draw(0, 256) * kMB);
    node.held_fast_bytes = draw(0, 1) < 0.3 ? data : 0;
    node.held_slow_bytes = draw(0, 1) < 0.3 ? data - node.held_fast_bytes : 0;
    node.assigned_operations = node.assigned * draw(1e7, 1e10);
    node.rates = {draw(5e8, 4e9), 8e9, draw(5e8, 3e9), draw(5e8, 3e9), draw(1e8, 1e9)};
    view.nodes.push_back(node);
  }
  view.nodes[0].candidate = true;
  return view;
}

std::vector<float> random_weights(uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> draw(0, 0.15F);
  std::vector<float> weights(TokenNet::weight_count());
  for (float& weight : weights) weight = draw(generator);
  return weights;
}

std::shared_ptr<DqnWeights> some_weights(uint64_t seed) {
  auto weights = std::make_shared<DqnWeights>();
  EXPECT_TRUE(weights->own.set_weights(random_weights(seed)));
  const auto others = random_weights(seed + 1);
  std::copy_n(others.begin(), weights->others.size(), weights->others.begin());
  return weights;
}

std::unique_ptr<Policy> policy_with(std::shared_ptr<const DqnWeights> weights, double epsilon = 0) {
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  if (weights) mailbox->put(std::move(weights));
  DqnSettings settings;
  settings.epsilon = epsilon;
  return make_dqn_policy(settings, 1, mailbox);
}

TEST(Tokens, AreFiniteAndBoundedWhateverANodeSays) {
  View view = random_view(6, 1);
  view.task.operations = std::numeric_limits<double>::infinity();
  view.task.data_bytes = UINT64_MAX;
  view.nodes[0] = {.candidate = true};  // knows nothing
  view.nodes[1].candidate = true;
  view.nodes[1].rates = {-1, 1e300, NAN, INFINITY, 0};
  view.nodes[1].assigned_operations = NAN;
  view.nodes[2].candidate = true;
  view.nodes[2].assigned = UINT32_MAX;
  TokenSet tokens;
  make_tokens(view, kAllFeatures, kNoExternality, kAll, tokens);
  ASSERT_GE(tokens.count(), 3u);
  for (float value : tokens.features) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_LE(std::abs(value), 4);
  }
  for (float value : tokens.prior) ASSERT_TRUE(std::isfinite(value));
  EXPECT_TRUE(std::isfinite(tokens.scale_s));
  EXPECT_GT(tokens.scale_s, 0);
}

TEST(Tokens, OnlyCandidatesHaveOneAndAMaskBlanksItsGroup) {
  View view = random_view(10, 2);
  view.nodes[3].candidate = false;
  TokenSet all;
  make_tokens(view, kAllFeatures, kNoExternality, kAll, all);
  EXPECT_EQ(std::count(all.nodes.begin(), all.nodes.end(), 3u), 0);
  TokenSet masked;
  make_tokens(view, without(FeatureGroup::kRequest), kNoExternality, kAll, masked);
  for (size_t i = 0; i < masked.features.size(); ++i) {
    const bool request = kTokenFeatures[i % kTokenSize].group == FeatureGroup::kRequest;
    ASSERT_EQ(masked.features[i], request ? 0 : all.features[i]);
  }
}

// Most tasks of a command line are such: no training would have told the network of zero
// operations.
TEST(Tokens, ATaskThatDoesNotTellItsOperationsLooksLikeAnOrdinaryOne) {
  View view = random_view(5, 1);
  TokenSet silent, ordinary;
  view.task.operations = 0;
  make_tokens(view, kAllFeatures, kNoExternality, kAll, silent);
  view.task.operations = operations_of(view.task);
  EXPECT_GT(view.task.operations, 0);
  make_tokens(view, kAllFeatures, kNoExternality, kAll, ordinary);
  EXPECT_EQ(silent.features, ordinary.features);
}

TEST(Tokens, OfManyTheBestAreTakenAndTheOneThatIsToBeKept) {
  const View view = random_view(200, 3);
  TokenSet all, few;
  make_tokens(view, kAllFeatures, kNoExternality, kAll, all);
  std::vector<float> priors = all.prior;
  std::sort(priors.begin(), priors.end(), std::greater<>());
  make_tokens(view, kAllFeatures, kNoExternality, 32, few);
  ASSERT_EQ(few.count(), 32u);
  EXPECT_EQ(*std::min_element(few.prior.begin(), few.prior.end()), priors[31]);
  EXPECT_TRUE(std::is_sorted(few.nodes.begin(), few.nodes.end()));
  EXPECT_EQ(few.scale_s, all.scale_s);
  for (size_t t = 0; t < few.count(); ++t) {  // a token is what it would be among all
    const auto at = static_cast<size_t>(
        std::find(all.nodes.begin(), all.nodes.end(), few.nodes[t]) - all.nodes.begin());
    ASSERT_TRUE(std::equal(few.features.begin() + static_cast<ptrdiff_t>(t * kTokenSize),
                           few.features.begin() + static_cast<ptrdiff_t>((t + 1) * kTokenSize),
                           all.features.begin() + static_cast<ptrdiff_t>(at * kTokenSize)));
  }
  const auto worst =
      static_cast<size_t>(std::min_element(all.prior.begin(), all.prior.end()) - all.prior.begin());
  TokenSet kept;
  make_tokens(view, kAllFeatures, kNoExternality, 32, kept, all.nodes[worst]);
  EXPECT_EQ(kept.count(), 32u);
  EXPECT_EQ(std::count(kept.nodes.begin(), kept.nodes.end(), all.nodes[worst]), 1);
  EXPECT_EQ(*std::max_element(kept.prior.begin(), kept.prior.end()), priors[0]);
  make_tokens(view, kAllFeatures, kNoExternality, 1000, few);
  EXPECT_EQ(few, all) << "nothing to leave out";
}

TEST(TokenNet, AgreesWithLibtorch) {
  use_one_torch_thread();
  TokenTrainee trainee(1e-3, 1);
  const auto weights = random_weights(4);
  ASSERT_TRUE(trainee.set_weights(weights));
  EXPECT_EQ(trainee.weights(), weights);
  TokenNet net;
  ASSERT_TRUE(net.set_weights(weights));
  TokenNet::Scratch scratch;
  for (size_t nodes : {1, 2, 3, 4, 5, 7, 31, 32, 129, 1024}) {
    TokenSet tokens;
    make_tokens(random_view(nodes, nodes), kAllFeatures, kNoExternality, kAll, tokens);
    std::vector<float> values(tokens.count(), 0);
    net.add_values(tokens.features, values, scratch);
    const auto expected = trainee.values(tokens);
    ASSERT_EQ(expected.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << nodes;
  }
}

TEST(TokenNet, RefusesWeightsThatDoNotFit) {
  TokenNet net;
  EXPECT_THAT(net.set_weights({1, 2}).error().message, HasSubstr("2 weights do not fit"));
  auto weights = random_weights(1);
  weights[5] = NAN;
  EXPECT_THAT(net.set_weights(weights).error().message, HasSubstr("not a finite number"));
  EXPECT_EQ(net.weights()[5], 0) << "unchanged";
}

TEST(DqnPolicy, TheOrderOfNodesDoesNotMatter) {
  const auto policy = policy_with(some_weights(11));
  std::mt19937_64 generator(5);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const View view = random_view(3 + 40 * seed, seed);
    const Decision before = policy->decide(view, {});
    View shuffled = view;
    std::shuffle(shuffled.nodes.begin(), shuffled.nodes.end(), generator);
    const Decision after = policy->decide(shuffled, {});
    ASSERT_EQ(shuffled.nodes[after.node].slot, view.nodes[before.node].slot);
    for (size_t i = 0; i < shuffled.nodes.size(); ++i) {
      const auto& q = before.q[shuffled.nodes[i].slot];
      ASSERT_EQ(q.has_value(), after.q[i].has_value());
      if (q) {
        ASSERT_NEAR(*q, *after.q[i], 1e-5 * (1 + std::abs(*q)));
      }
    }
  }
}

TEST(DqnPolicy, UntrainedItDecidesByTheEstimate) {
  const auto policy = policy_with(std::make_shared<DqnWeights>());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const View view = random_view(20, seed);
    const NodeRates typical = typical_rates(view);
    const size_t chosen = policy->decide(view, {}).node;
    const double finish_s = estimate_finish(view.task, view.nodes[chosen], typical).finish_s();
    for (const NodeState& node : view.nodes)
      if (node.candidate) {
        ASSERT_LE(finish_s, estimate_finish(view.task, node, typical).finish_s() * (1 + 1e-6));
      }
  }
}

TEST(DqnPolicy, FallsBackWithAReason) {
  const View view = random_view(5, 1);
  const Decision unarmed = policy_with(nullptr)->decide(view, {});
  EXPECT_LT(unarmed.node, 5u);
  EXPECT_THAT(unarmed.reason, HasSubstr("no weights yet"));
  auto huge = std::make_shared<DqnWeights>();
  ASSERT_TRUE(huge->own.set_weights(std::vector<float>(TokenNet::weight_count(), 3e38F)));
  const Decision wild = policy_with(huge)->decide(view, {});
  EXPECT_LT(wild.node, 5u);
  EXPECT_THAT(wild.reason, HasSubstr("not finite"));
  EXPECT_EQ(policy_with(huge)->decide(View{}, {}).node, kNoNode);
}

TEST(DqnPolicy, ExploresCandidatesOnly) {
  const auto policy = policy_with(std::make_shared<DqnWeights>(), 0.5);
  const View view = random_view(12, 9);
  int explored = 0;
  for (int i = 0; i < 400; ++i) {
    const Decision decision = policy->decide(view, {});
    ASSERT_TRUE(view.nodes[decision.node].candidate);
    explored += decision.explored;
  }
  EXPECT_NEAR(explored, 200, 60);
}

TEST(DqnPolicy, ValuesNoMoreNodesThanItIsToldTo) {
  DqnSettings settings;
  settings.epsilon = 0.5;
  settings.tokens = 8;
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  mailbox->put(some_weights(3));
  const auto policy = make_dqn_policy(settings, 1, mailbox);
  const View view = random_view(100, 5);
  bool explored = false;
  for (int i = 0; i < 50; ++i) {
    const Decision decision = policy->decide(view, {});
    EXPECT_EQ(
        std::count_if(decision.q.begin(), decision.q.end(), [](const auto& q) { return !!q; }), 8);
    ASSERT_LT(decision.node, view.nodes.size());
    EXPECT_TRUE(decision.q[decision.node]);
    explored = explored || decision.explored;
  }
  EXPECT_TRUE(explored);
}

TEST(DqnWeightsFile, ComesBackWithItsProvenance) {
  WeightsFile file{*some_weights(3),
                   without(FeatureGroup::kGpu),
                   {"train --config x", "abc", 7, "1.2", "{\"gain\": 0.1}"}};
  file.weights.version = 12;
  file.weights.others[3] = 0.25;
  const auto back = decode_weights(encode_weights(file));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->weights.own.weights(), file.weights.own.weights());
  EXPECT_EQ(back->weights.others, file.weights.others);
  EXPECT_EQ(back->weights.version, 12u);
  EXPECT_EQ(back->features, file.features);
  EXPECT_EQ(back->provenance, file.provenance);
}

TEST(DqnWeightsFile, SaysWhyItIsRefused) {
  const std::string bytes = encode_weights({*some_weights(3), kAllFeatures, {}});
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 40)
    EXPECT_FALSE(decode_weights(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_THAT(decode_weights("other bytes").error().message, HasSubstr("no dqn weights file"));
  EXPECT_EQ(load_weights("/nonexistent/weights").error().code, ErrorCode::kNotFound);
}

DqnSettings quick() {
  DqnSettings settings;
  settings.batch = 32;
  settings.train_start = 64;
  settings.batches_per_experience = 2;
  settings.learning_rate = 3e-3;
  return settings;
}

// Nodes whose slot is odd take three times as long as the estimate says.
void live_through(DqnLearner& learner, int tasks) {
  for (int i = 0; i < tasks; ++i) {
    View view = random_view(4, static_cast<uint64_t>(i));
    for (NodeState& node : view.nodes) node.gpu_milli = node.slot % 2 == 0 ? 0 : 1000;
    for (NodeState& node : view.nodes) node.free_gpu_milli = node.gpu_milli;
    const size_t node = static_cast<size_t>(i) % 4;
    if (!view.nodes[node].candidate) continue;
    const auto id = static_cast<uint64_t>(i);
    learner.decided(id, view, node);
    const double estimate_s =
        estimate_finish(view.task, view.nodes[node], typical_rates(view)).finish_s();
    learner.finished(id, estimate_s * (node % 2 == 0 ? 1 : 3));
    while (learner.ready()) learner.train_batch();
    learner.copy_weights_if_due();
  }
}

// How much dearer the odd nodes are than the even ones, by what was learned: the mean ratio.
double learned_ratio(const DqnWeights& weights) {
  double sum = 0;
  int count = 0;
  TokenValuer valuer;
  for (uint64_t seed = 5000; seed < 5100; ++seed) {
    View view = random_view(4, seed);
    for (NodeState& node : view.nodes) node.candidate = true;
    for (NodeState& node : view.nodes) node.gpu_milli = node.slot % 2 == 0 ? 0 : 1000;
    for (NodeState& node : view.nodes) node.free_gpu_milli = node.gpu_milli;
    TokenSet tokens;
    make_tokens(view, kAllFeatures, kNoExternality, kAll, tokens);
    const auto& values = valuer.values(weights, tokens);
    for (size_t i = 1; i < 4; i += 2) {
      if (tokens.prior[i] < -kWorst / 4) continue;
      sum += values[i] / tokens.prior[i];
      ++count;
    }
  }
  return sum / count;
}

TEST(DqnLearner, LearnsWhatTheEstimateDoesNotKnow) {
  use_one_torch_thread();
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner(quick(), 1, 64, mailbox);
  live_through(learner, 1500);
  EXPECT_NEAR(learned_ratio(learner.weights()), 3, 0.6);
  EXPECT_GT(mailbox->newest()->version, 1u);
}

// Another policy may choose a node that the network would not even have looked at.
TEST(DqnLearner, LearnsOfChoicesBeyondTheBestToo) {
  use_one_torch_thread();
  DqnSettings settings = quick();
  settings.tokens = 4;
  DqnLearner learner(settings, 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  View view = random_view(50, 3);
  for (NodeState& node : view.nodes) node.candidate = true;
  for (size_t node = 0; node < view.nodes.size(); ++node) {
    learner.decided(node, view, node);
    learner.finished(node, 1 + static_cast<double>(node));
  }
  const LearnerCounters now = learner.counters();
  EXPECT_EQ(now.experiences, 49u);
  EXPECT_EQ(now.pending, 1u) << "the last one waits for the next decision";
}

TEST(DqnLearner, LearnsTheSameWithPriorities) {
  use_one_torch_thread();
  DqnSettings settings = quick();
  settings.priority = 0.6;
  DqnLearner learner(settings, 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  live_through(learner, 1500);
  EXPECT_NEAR(learned_ratio(learner.weights()), 3, 0.6) << "the weights undo the choice";
}

TEST(DqnLearner, KeepsWhatOthersPay) {
  use_one_torch_thread();
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner(quick(), 1, 64, mailbox);
  DqnWeights start = learner.weights();
  start.others = delay_finish_externality();
  ASSERT_TRUE(learner.start_from(start));
  live_through(learner, 300);
  EXPECT_EQ(mailbox->newest()->others, start.others);
  DqnLearner second(quick(), 2, 64, std::make_shared<Mailbox<DqnWeights>>());
  ASSERT_TRUE(second.restore(learner.save()));
  EXPECT_EQ(second.weights().others, start.others);
}

TEST(DqnLearner, GoesOnFromWhatItSavedAndRefusesDamage) {
  use_one_torch_thread();
  DqnLearner first(quick(), 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  live_through(first, 300);
  first.decided(1000, random_view(3, 1), 0);
  const std::string saved = first.save();
  DqnLearner second(quick(), 2, 64, std::make_shared<Mailbox<DqnWeights>>());
  ASSERT_TRUE(second.restore(saved));
  EXPECT_EQ(second.weights().own.weights(), first.weights().own.weights());
  EXPECT_EQ(second.counters().pending, first.counters().pending);
  EXPECT_EQ(second.counters().replay_size, first.counters().replay_size);
  EXPECT_EQ(second.counters().decisions, first.counters().decisions);
  while (first.ready()) first.train_batch();
  ASSERT_TRUE(second.restore(first.save()));
  EXPECT_FALSE(second.ready()) << "what was used up is used again";
  EXPECT_GT(second.counters().weights_version, first.counters().weights_version);
  for (size_t size = 0; size < saved.size(); size += 1 + saved.size() / 200)
    ASSERT_FALSE(second.restore(std::string_view(saved).substr(0, size))) << size;
  DqnSettings other = quick();
  other.features = without(FeatureGroup::kLoad);
  DqnLearner third(other, 2, 64, std::make_shared<Mailbox<DqnWeights>>());
  EXPECT_THAT(third.restore(saved).error().message, HasSubstr("other features"));
}

TEST(DqnLearner, BootstrapsWithDoubleDqnWhenAskedTo) {
  use_one_torch_thread();
  DqnSettings settings = quick();
  settings.gamma = 0.3;
  DqnLearner learner(settings, 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  live_through(learner, 300);
  EXPECT_GT(learner.counters().batches, 100u);
  EXPECT_TRUE(std::isfinite(learner.counters().loss));
}

}  // namespace
}  // namespace tierpilot
