#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "policies/placement/dqn/dqn_policy.h"
#include "policies/placement/dqn/token_trainee.h"
#include "policies/scheduling/estimate.h"
#include "tests/unit/policies/dqn_scene.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

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
    const Decision before = policy->decide(view);
    View shuffled = view;
    std::shuffle(shuffled.nodes.begin(), shuffled.nodes.end(), generator);
    const Decision after = policy->decide(shuffled);
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
    const size_t chosen = policy->decide(view).node;
    const double finish_s = estimate_finish(view.task, view.nodes[chosen], typical).finish_s();
    for (const NodeState& node : view.nodes)
      if (node.candidate) {
        ASSERT_LE(finish_s, estimate_finish(view.task, node, typical).finish_s() * (1 + 1e-6));
      }
  }
}

TEST(DqnPolicy, FallsBackWithAReason) {
  const View view = random_view(5, 1);
  const Decision unarmed = policy_with(nullptr)->decide(view);
  EXPECT_LT(unarmed.node, 5u);
  EXPECT_THAT(unarmed.reason, HasSubstr("no weights yet"));
  auto huge = std::make_shared<DqnWeights>();
  ASSERT_TRUE(huge->own.set_weights(std::vector<float>(TokenNet::weight_count(), 3e38F)));
  const Decision wild = policy_with(huge)->decide(view);
  EXPECT_LT(wild.node, 5u);
  EXPECT_THAT(wild.reason, HasSubstr("not finite"));
  EXPECT_EQ(policy_with(huge)->decide(View{}).node, kNoNode);
}

TEST(DqnPolicy, ExploresCandidatesOnly) {
  const auto policy = policy_with(std::make_shared<DqnWeights>(), 0.5);
  const View view = random_view(12, 9);
  int explored = 0;
  for (int i = 0; i < 400; ++i) {
    const Decision decision = policy->decide(view);
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
    const Decision decision = policy->decide(view);
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

}  // namespace
}  // namespace tierpilot
