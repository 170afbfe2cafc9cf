// Segments of trainings with libtorch: computed again they give what they gave.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <sstream>
#include <thread>

#include "tests/unit/swap_libtorch/segments_scene.h"

namespace tierpilot::swap {
namespace {

class SegmentValuesTest : public testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

TEST_F(SegmentValuesTest, GradientsMeansAndRandomNumbersAreThoseWithout) {
  const auto plain = steps_of(std::nullopt, new_deep());
  for (const auto* policy : {"checkpoint", "swap", "swap-all"})
    for (const auto* budget : {kRoom.c_str(), "1MiB"}) {
      const ScopeSettings settings{
          .budget = budget, .policy = policy, .tiers = "memory=160MiB", .recompute = true};
      EXPECT_TRUE(same(steps_of(settings, new_deep()), plain)) << policy << ' ' << budget;
      EXPECT_EQ(counted(settings, "segments"), 6 * 4) << "those within others are none";
      if (policy == std::string("checkpoint")) {
        EXPECT_EQ(recomputed(settings), 5 * 4) << "all but the first step's";
      }
      EXPECT_EQ(held_bytes(settings), 0);
    }
}

TEST_F(SegmentValuesTest, WithoutRecomputeTheyJustRun) {
  const ScopeSettings settings{.budget = kRoom, .policy = "swap", .tiers = "memory=161MiB"};
  EXPECT_TRUE(same(steps_of(settings, new_deep()), steps_of(std::nullopt, new_deep())));
  EXPECT_GT(counted(settings, "saves"), 0);
  EXPECT_EQ(counted(settings, "segments"), 0);
}

TEST_F(SegmentValuesTest, OnlyTheirInputsAreSaved) {
  const auto settings = all_again();
  auto net = new_deep();
  steps_of(settings, net, {kBatch});
  const auto whole = counted(settings, "saved_bytes");
  steps_of(settings, net, {kBatch});
  // Of four blocks, and of the last layer.
  EXPECT_EQ(counted(settings, "saved_bytes") - whole, 5 * kBatch * kFeatures * int64_t{4});
  EXPECT_GT(whole, 2 * (counted(settings, "saved_bytes") - whole));
}

TEST_F(SegmentValuesTest, StepsOfOtherShapesAndModesAreOtherSteps) {
  const std::vector<int64_t> batches{kBatch, kBatch, 300, kBatch, 300, kBatch};
  const auto settings = all_again();
  EXPECT_TRUE(
      same(steps_of(settings, new_deep(), batches), steps_of(std::nullopt, new_deep(), batches)));
  EXPECT_EQ(recomputed(settings), 4 * 4) << "all but the first of each";
  auto net = new_deep();
  net->eval();
  steps_of(settings, net, {kBatch});
  EXPECT_EQ(recomputed(settings), 4 * 4);
  steps_of(settings, net, {kBatch});
  EXPECT_EQ(recomputed(settings), 5 * 4);
}

TEST_F(SegmentValuesTest, AnotherModelOfTheSameMakeIsKnown) {
  const auto settings = all_again();
  steps_of(settings, new_deep(), {kBatch});
  auto other = new_deep();
  {
    const torch::NoGradGuard quiet;
    for (auto& weights : other->parameters()) weights.mul_(0.5);
  }
  auto same_weights = std::dynamic_pointer_cast<DeepImpl>(new_deep().ptr());
  {
    const torch::NoGradGuard quiet;
    for (auto& weights : same_weights->parameters()) weights.mul_(0.5);
  }
  EXPECT_TRUE(same(steps_of(settings, other, {kBatch}),
                   steps_of(std::nullopt, Deep(same_weights), {kBatch})));
  EXPECT_EQ(recomputed(settings), 4);
}

TEST_F(SegmentValuesTest, ForwardPassesWithoutABackwardPassChangeNothing) {
  const auto settings = all_again();
  auto net = new_deep();
  steps_of(settings, net, {kBatch, kBatch});
  const auto before = recomputed(settings);
  for (int i = 0; i < 3; ++i) {
    const Scope scope(settings);
    net->forward(batch_of(kBatch, 1));
  }
  EXPECT_EQ(recomputed(settings), before + 3 * 4) << "they are known as the step that they begin";
  steps_of(settings, net, {kBatch});
  EXPECT_EQ(recomputed(settings), before + 4 * 4);
  EXPECT_EQ(held_bytes(settings), 0);
}

TEST_F(SegmentValuesTest, WhereNoGradientsAreWantedAndWithoutAScopeTheyJustRun) {
  const auto settings = all_again();
  auto net = new_deep();
  {
    const Scope scope(settings);
    const torch::NoGradGuard quiet;
    EXPECT_FALSE(net->forward(batch_of(kBatch, 1)).requires_grad());
  }
  {
    const Scope scope(settings);
    std::thread([&] { net->forward(batch_of(kBatch, 1)); }).join();
  }
  net->forward(batch_of(kBatch, 1));
  EXPECT_EQ(counted(settings, "segments"), 0);
}

TEST_F(SegmentValuesTest, AGraphThatIsKeptIsComputedAgainEachTime) {
  const auto settings = all_again();
  auto net = new_deep();
  const auto x = batch_of(kBatch, 1).requires_grad_();
  const auto made = [&] {
    torch::manual_seed(3);
    return net->forward(x).square().sum();
  };
  const auto plain = torch::autograd::grad({made()}, {x})[0];
  for (int step = 0; step < 2; ++step) {
    torch::Tensor y;
    {
      const Scope scope(settings);
      y = made();
    }
    EXPECT_TRUE(torch::autograd::grad({y}, {x}, {}, true)[0].equal(plain));
    EXPECT_TRUE(torch::autograd::grad({y}, {x})[0].equal(plain));
  }
  EXPECT_EQ(recomputed(settings), 4);
  EXPECT_EQ(held_bytes(settings), 0);
}

TEST_F(SegmentValuesTest, AGraphThatIsKeptRunsABlockThatCountsAsItRanFirst) {
  const auto settings = all_again();
  const auto x = batch_of(kBatch, 1).requires_grad_();
  const auto made = [&] {
    return segment([n = 0](torch::Tensor y) mutable { return (y * ++n).tanh(); }, x).sum();
  };
  const auto plain = torch::autograd::grad({made()}, {x})[0];
  for (int step = 0; step < 2; ++step) {
    torch::Tensor y;
    {
      const Scope scope(settings);
      y = made();
    }
    EXPECT_TRUE(torch::autograd::grad({y}, {x}, {}, true)[0].equal(plain));
    EXPECT_TRUE(torch::autograd::grad({y}, {x})[0].equal(plain));
  }
  EXPECT_EQ(recomputed(settings), 1);
}

// The second time they are other tensors.
TEST_F(SegmentValuesTest, AnInputThatIsGivenTwiceAndThatABlockHasByItself) {
  const auto settings = all_again();
  const auto x = batch_of(kBatch, 1).requires_grad_(), z = batch_of(kBatch, 2);
  const auto made = [&] {
    return segment([&](torch::Tensor a, torch::Tensor b,
                       torch::Tensor c) { return (a.exp() - b * c - x * z).tanh(); },
                   x, z, x)
        .sum();
  };
  const auto plain = torch::autograd::grad({made()}, {x})[0];
  for (int step = 0; step < 3; ++step) {
    torch::Tensor y;
    {
      const Scope scope(settings);
      y = made();
    }
    EXPECT_TRUE(torch::autograd::grad({y}, {x})[0].equal(plain));
  }
  EXPECT_EQ(recomputed(settings), 2);
}

// Its memory is torch's, though not as of what was made here.
TEST_F(SegmentValuesTest, AModelThatWasLoadedIsComputedAgain) {
  const auto settings = all_again();
  std::stringstream file;
  auto net = new_deep(), loaded = new_deep();
  torch::save(net, file);
  torch::load(loaded, file);
  EXPECT_TRUE(same(steps_of(settings, loaded, {kBatch, kBatch}),
                   steps_of(std::nullopt, net, {kBatch, kBatch})));
  EXPECT_EQ(recomputed(settings), 4);
}

TEST_F(SegmentValuesTest, GradientsOfGradients) {
  const auto settings = all_again();
  const auto x = torch::randn({128, 512}, torch::requires_grad());
  const auto twice = [&] {
    const auto y = segment([](torch::Tensor a) { return a.exp() * a.tanh(); }, x).sum();
    const auto g = torch::autograd::grad({y}, {x}, {}, true, true)[0];
    return torch::autograd::grad({(g * g).sum()}, {x})[0];
  };
  const auto plain = twice();
  const Scope scope(settings);
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(twice().equal(plain));
  EXPECT_EQ(recomputed(settings), 2);
}

TEST_F(SegmentValuesTest, AnyNumberOfInputsAndOutputs) {
  const auto settings = all_again();
  const auto a = torch::randn({128, 512}, torch::requires_grad());
  const auto b = torch::randn({128, 512});
  const auto gradient = [&] {
    int64_t runs = 0;
    const auto block = [&runs](torch::Tensor x, double factor, torch::Tensor y, torch::Tensor mask,
                               const std::vector<torch::Tensor>& more) {
      ++runs;
      EXPECT_FALSE(mask.defined());
      return std::tuple((x.exp() * y).tanh() * factor, more[0] * x, 7);
    };
    const auto [one, two, seven] =
        segment(block, a, 0.5, b * 1, torch::Tensor(), std::vector<torch::Tensor>{b.tanh()});
    EXPECT_EQ(seven, 7);
    const auto made = torch::autograd::grad({one.sum() + two.sum()}, {a})[0];
    return std::pair(made, runs);
  };
  const auto plain = gradient();
  EXPECT_EQ(plain.second, 1);
  const Scope scope(settings);
  EXPECT_EQ(gradient().second, 1);
  const auto again = gradient();
  EXPECT_TRUE(again.first.equal(plain.first));
  EXPECT_EQ(again.second, 2);
}

torch::Tensor doubled(const torch::Tensor& x) {
  return x.exp().tanh() * 2;
}

TEST_F(SegmentValuesTest, ABlockIsAModuleInAnyFormOrWhatCanBeCalled) {
  const auto settings = all_again();
  auto holder = Block(false);
  const auto pointer = holder.ptr();
  torch::nn::Sequential net(holder, torch::nn::Linear(kFeatures, kFeatures));
  const Forward forward = [&](torch::Tensor x) {
    x = segment(holder, x);
    x = segment(pointer, x);
    x = segment(pointer.get(), x);
    x = segment(net, x);
    for (auto& part : *net) x = segment(part, x);
    x = segment(doubled, x);
    segment([](torch::Tensor y) { (void)y.exp(); }, x);
    return segment([holder](torch::Tensor y) mutable { return holder->layer(y).exp(); }, x);
  };
  const std::vector<int64_t> batches{kBatch, kBatch, kBatch};
  const auto means = means_of(*net);
  const auto restore = [&] {
    const torch::NoGradGuard quiet;
    auto buffers = net->buffers();
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(means[i]);
  };
  const auto plain = steps_of(std::nullopt, *net, forward, batches);
  restore();
  EXPECT_TRUE(same(steps_of(settings, *net, forward, batches), plain));
  EXPECT_EQ(counted(settings, "segments"), 3 * 9);
  EXPECT_EQ(recomputed(settings), 2 * 9);
}

TEST_F(SegmentValuesTest, BackwardPassesOnOtherThreadsAndSeveralAtOnce) {
  const auto settings = all_again();
  auto net = new_deep();
  constexpr size_t kThreads = 4;
  for (int round = 0; round < 3; ++round) {
    Tensors inputs, losses, plain, results(kThreads);
    const auto loss = [&](size_t i) {
      torch::manual_seed(static_cast<int64_t>(i));
      return net->forward(inputs[i]).square().sum();
    };
    const auto before = recomputed(settings);
    for (size_t i = 0; i < kThreads; ++i) {
      inputs.push_back(batch_of(kBatch, i).requires_grad_());
      plain.push_back(torch::autograd::grad({loss(i)}, {inputs[i]})[0]);
      const Scope scope(settings);
      losses.push_back(loss(i));
    }
    EXPECT_EQ(recomputed(settings) - before, round == 0 ? 0 : kThreads * 4);
    const auto means = means_of(*net);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i)
      threads.emplace_back(
          [&, i] { results[i] = torch::autograd::grad({losses[i]}, {inputs[i]})[0]; });
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(same({results}, {plain}));
    EXPECT_TRUE(same({means_of(*net)}, {means})) << "counted once";
  }
}

TEST_F(SegmentValuesTest, ABackwardPassUnderInferenceMode) {
  const auto settings = all_again();
  const auto gradients = [&](bool scoped) {
    auto net = new_deep();
    std::vector<Tensors> all;
    for (int step = 0; step < 2; ++step) {
      torch::manual_seed(2);
      torch::Tensor loss;
      {
        std::optional<Scope> scope;
        if (scoped) scope.emplace(settings);
        loss = net->forward(batch_of(kBatch, 1)).square().mean();
      }
      {
        const c10::InferenceMode inference;
        all.push_back(torch::autograd::grad({loss}, net->parameters()));
      }
      all.push_back(means_of(*net));
    }
    return all;
  };
  EXPECT_TRUE(same(gradients(true), gradients(false)));
  EXPECT_EQ(recomputed(settings), 4);
}

TEST_F(SegmentValuesTest, SmallerTypesByAutocastAreThoseOfTheForwardPass) {
  const auto settings = all_again();
  const auto gradients = [&](bool scoped) {
    auto net = new_deep();
    std::vector<Tensors> all;
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      torch::Tensor loss;
      {
        std::optional<Scope> scope;
        if (scoped) scope.emplace(settings);
        at::autocast::set_cpu_enabled(true);
        loss = net->forward(batch_of(kBatch, 1)).square().mean();
        at::autocast::set_cpu_enabled(false);
        at::autocast::clear_cache();
      }
      loss.backward();
      EXPECT_FALSE(at::autocast::is_cpu_enabled());
      all.push_back(gradients_and_means_of(*net));
    }
    return all;
  };
  torch::manual_seed(1);
  const auto plain = gradients(false);
  torch::manual_seed(1);
  EXPECT_TRUE(same(gradients(true), plain));
  EXPECT_EQ(recomputed(settings), 2 * 4);
}

}  // namespace
}  // namespace tierpilot::swap
