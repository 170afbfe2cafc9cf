// What a program does meanwhile to segments that are to be computed again: never a wrong gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/swap_libtorch/segments_scene.h"

namespace tierpilot::swap {
namespace {

using ::testing::HasSubstr;

class SegmentChangesTest : public testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

constexpr const char* kModified = "modified by an inplace operation";
constexpr const char* kDiffers = "depends on more than its inputs";

// The loss of a step that is computed again, after one that taught it.
torch::Tensor known_loss(const ScopeSettings& settings, const Forward& forward, torch::Tensor x) {
  for (int step = 0;; ++step) {
    const auto before = recomputed(settings);
    torch::Tensor loss;
    {
      const Scope scope(settings);
      loss = forward(x).square().sum();
    }
    if (step > 0) {
      EXPECT_GT(recomputed(settings), before);
      return loss;
    }
    loss.backward();
  }
}

TEST_F(SegmentChangesTest, AWeightThatChangesBeforeTheBackwardPassIsRefused) {
  const auto settings = all_again();
  torch::nn::Linear layer(kFeatures, kFeatures);
  const std::vector<Forward> forms{
      [&](torch::Tensor x) { return segment(layer, x); },
      [&](torch::Tensor x) { return segment([&](torch::Tensor y) { return layer(y); }, x); }};
  for (const auto& forward : forms)
    for (auto& weights : {layer->weight, layer->bias}) {
      const auto loss = known_loss(settings, forward, batch_of(kBatch, 1));
      {
        const torch::NoGradGuard quiet;
        weights.add_(1);
      }
      EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr(kModified));
    }
}

TEST_F(SegmentChangesTest, AnInputThatChangesBeforeTheBackwardPassIsRefused) {
  const auto settings = all_again();
  torch::nn::Linear layer(kFeatures, kFeatures);
  const auto large = batch_of(kBatch, 2).requires_grad_();
  for (const int64_t batch : {kBatch, int64_t{8}}) {  // such as leave, and such as are too small
    torch::Tensor made;
    const auto loss = known_loss(
        settings,
        [&](torch::Tensor x) {
          made = layer(x).detach();
          return segment(layer, made).tanh() + large.exp().mean();
        },
        batch_of(batch, 1));
    made.add_(1);
    EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr(kModified));
  }
}

TEST_F(SegmentChangesTest, WhatItReadsBesideItsInputsIsCheckedToo) {
  const auto settings = all_again();
  const auto x = batch_of(kBatch, 1).requires_grad_();
  auto mask = batch_of(kBatch, 2);
  const Forward forward = [&](torch::Tensor y) {
    return segment([&](torch::Tensor z) { return (z + mask).exp(); }, y);
  };
  auto loss = known_loss(settings, forward, x);
  mask.add_(1);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr(kModified));

  loss = known_loss(settings, forward, x);
  const auto old = mask;
  mask = batch_of(kBatch, 3);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr(kDiffers));

  loss = known_loss(settings, forward, x);
  mask = old;
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("is gone"));
}

TEST_F(SegmentChangesTest, ModesAreThoseOfTheForwardPass) {
  const auto settings = all_again();
  const auto gradients = [&](const std::optional<ScopeSettings>& scoped) {
    auto net = new_deep();
    steps_of(scoped, net, {kBatch});
    torch::manual_seed(3);
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (scoped) scope.emplace(*scoped);
      loss = net->forward(batch_of(kBatch, 1)).square().sum();
    }
    net->eval();
    net->blocks[1]->norm->train();
    loss.backward();
    EXPECT_FALSE(net->blocks[0]->norm->is_training());
    EXPECT_FALSE(net->blocks[1]->is_training());
    EXPECT_TRUE(net->blocks[1]->norm->is_training());
    return gradients_and_means_of(*net);
  };
  EXPECT_TRUE(same({gradients(settings)}, {gradients(std::nullopt)}));
  EXPECT_EQ(recomputed(settings), 4);
}

TEST_F(SegmentChangesTest, WhatDependsOnMoreThanItsInputsIsAnErrorAndNoWrongGradient) {
  const auto x = batch_of(kBatch, 1).requires_grad_();
  int calls = 0;
  const std::vector<std::function<torch::Tensor(torch::Tensor)>> moody{
      [&](torch::Tensor y) { return ++calls % 2 ? y.tanh().exp() : (y * 2).tanh(); },
      [&](torch::Tensor y) { return (y * ++calls).tanh(); },
      [&](torch::Tensor y) { return (++calls % 2 ? y.sin() : y.cos()).tanh(); },
      [&](torch::Tensor y) {
        return torch::batch_norm(y, {}, {}, {}, {}, true, 0.1, ++calls, false).tanh();
      },
      [&](torch::Tensor y) {
        const auto a = y.sin(), b = y.cos();
        return (++calls % 2 ? a - b : b - a).tanh() * y;
      },
      [&](torch::Tensor y) {
        return (++calls % 2 ? y.clamp(c10::nullopt, 0.5) : y.clamp(0.5)) * y;
      },
      [&](torch::Tensor y) {
        const auto m = torch::zeros(kFeatures), v = torch::ones(kFeatures);
        const double momentum = ++calls % 2 ? 0.1 : 0.9;
        return torch::batch_norm(y, {}, {}, m, v, true, momentum, 1e-5, false) * (m + v);
      },
      [&](torch::Tensor y) { return torch::div(y, 0.3, ++calls % 2 ? "floor" : "trunc") * y; },
      [&](torch::Tensor y) {
        return torch::real(torch::mul(y, c10::complex<double>(++calls, 1))).tanh();
      },
      [&](torch::Tensor y) { return ++calls % 2 ? y.tanh() : y.tanh().exp().exp(); }};
  for (size_t at = 0; at < moody.size(); ++at) {
    const auto settings = all_again();
    const auto loss = known_loss(
        settings, [&](torch::Tensor y) { return segment(moody[at], y) * 1; }, x);
    EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr(kDiffers)) << at;
  }
}

// The graph has what was computed with the weights that were there.
TEST_F(SegmentChangesTest, AWeightThatIsSetAnewBeforeTheBackwardPassIsRefused) {
  const auto settings = all_again();
  torch::nn::Linear layer(kFeatures, kFeatures);
  const auto loss = known_loss(
      settings, [&](torch::Tensor x) { return segment(layer, x); }, batch_of(kBatch, 1));
  layer->weight.set_data(layer->weight.detach() * 0.5);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("was set anew"));
}

TEST_F(SegmentChangesTest, AnInputThatIsSetAnewBeforeTheBackwardPassIsRefused) {
  for (const bool is_leaf : {true, false}) {
    const auto x = batch_of(kBatch, 1).requires_grad_(), y = is_leaf ? x : x * 1;
    const auto loss = known_loss(
        all_again(), [&](torch::Tensor) { return segment([](auto z) { return z.exp(); }, y); }, y);
    y.set_data(y.detach() * 0.5);
    EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("was set anew")) << is_leaf;
  }
}

struct CountsImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    calls += 1;
    return (x * calls).tanh();
  }
  torch::Tensor calls = register_buffer("calls", torch::zeros(1));
};
TORCH_MODULE(Counts);

TEST_F(SegmentChangesTest, WhatWouldNotGiveTheSameIsNeverComputedAgain) {
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(uint64_t{3});
  Counts counts;
  torch::nn::BatchNorm1d norm(kFeatures);
  auto mean = torch::zeros(kFeatures), variance = torch::ones(kFeatures);
  std::vector<float> others(kFeatures, 0.5);  // whoever has it may write to it
  const std::vector<std::function<torch::Tensor(torch::Tensor)>> blocks{
      [&](torch::Tensor x) { return segment(counts, x); },
      [&](torch::Tensor x) {
        return segment([](torch::Tensor y) { return y.relu_().exp(); }, x * 1);
      },
      [&](torch::Tensor x) {
        return segment(
            [&](torch::Tensor y) { return (y * torch::randn({kFeatures}, generator)).exp(); }, x);
      },
      [&](torch::Tensor x) { return segment([&](torch::Tensor y) { return norm(y).exp(); }, x); },
      [&](torch::Tensor x) {
        return segment(
            [&](torch::Tensor y) {
              return torch::batch_norm(y, {}, {}, mean, variance, true, 0.1, 1e-5, false).exp();
            },
            x);
      },
      [&](torch::Tensor x) {
        return segment(
            [](torch::Tensor y, torch::Tensor m, torch::Tensor v) {
              return torch::batch_norm(y, {}, {}, m, v, true, 0.1, 1e-5, false).exp();
            },
            x, mean, variance);
      },
      [&](torch::Tensor x) {
        return segment(
            [](torch::Tensor y, torch::Tensor m, torch::Tensor v) {
              return torch::batch_norm(y, {}, {}, m.detach(), v.detach(), true, 0.1, 1e-5, false)
                  .exp();
            },
            x, mean, variance);
      },
      [&](torch::Tensor x) {
        return segment(
            [&](torch::Tensor y) {
              return (y * torch::from_blob(others.data(), {kFeatures})).exp();
            },
            x);
      },
      [&](torch::Tensor x) {
        return segment([](torch::Tensor y, torch::Tensor z) { return (y * z).exp(); }, x,
                       torch::from_blob(others.data(), {kFeatures}));
      },
      [&](torch::Tensor x) {
        return segment(
            [&](torch::Tensor y) {
              const auto own = torch::ones({3}, torch::requires_grad());
              own.exp().sum().backward();
              return y.exp() * own.grad()[0];
            },
            x);
      }};
  const auto settings = all_again();
  for (size_t at = 0; at < blocks.size(); ++at) {
    const Tensors state{counts->calls, norm->running_mean, norm->num_batches_tracked, mean,
                        variance};
    const auto gradients = [&](bool scoped) {
      const torch::AutoGradMode recording(true);
      for (const auto& each : state) each.zero_();
      generator.set_current_seed(3);
      std::vector<Tensors> all;
      for (int step = 0; step < 4; ++step) {
        const auto x = batch_of(kBatch, step).requires_grad_();
        std::optional<Scope> scope;
        if (scoped) scope.emplace(settings);
        // Beside one that is computed again.
        const auto y = segment([](torch::Tensor z) { return z.exp().tanh(); }, x);
        blocks[at](y).sum().backward();
        all.push_back({x.grad()});
        for (const auto& each : state) all.back().push_back(each.clone());
      }
      return all;
    };
    const auto plain = gradients(false);
    const auto before = recomputed(settings);
    EXPECT_TRUE(same(gradients(true), plain)) << at;
    EXPECT_LE(recomputed(settings) - before, 4) << at;
    EXPECT_GE(recomputed(settings) - before, 3) << at;
  }
}

TEST_F(SegmentChangesTest, OneThatBeginsToChangeWhatItReadsIsAnErrorAndNoWrongGradient) {
  const auto settings = all_again();
  auto factor = torch::ones({1});
  bool changes = false;
  const Forward forward = [&](torch::Tensor x) {
    return segment(
        [&](torch::Tensor y) {
          if (changes) factor.add_(1);
          return (y * factor).exp();
        },
        x);
  };
  known_loss(settings, forward, batch_of(kBatch, 1).requires_grad_());
  changes = true;
  const auto x = batch_of(kBatch, 1).requires_grad_();
  torch::Tensor y;
  {
    const Scope scope(settings);
    y = forward(x);
  }
  EXPECT_THAT(error_of([&] { y.sum().backward(); }),
              HasSubstr("cannot be computed again: it changes a tensor that it reads"));
}

TEST_F(SegmentChangesTest, AStepThatHadNoMemoryToComputeAgainRunsAgain) {
  const auto settings = all_again();
  Scope scope(settings);
  int runs = 0;
  for (int step = 0; step < 2; ++step) {
    const auto x = batch_of(kBatch, 1).requires_grad_();
    const auto made = scope.step([&] {
      x.mutable_grad() = torch::Tensor();
      const auto y = segment(
          [&](torch::Tensor z) {
            if (++runs == 3) (void)torch::empty({int64_t{1} << 46});
            return torch::dropout(z.exp(), 0.5, true);
          },
          x);
      y.sum().backward();
      return y;
    });
    EXPECT_TRUE(x.grad().equal(made)) << "that of exp, where it is not dropped";
  }
  EXPECT_GE(runs, 4);
  EXPECT_EQ(counted(settings, "failures"), 1);
}

TEST_F(SegmentChangesTest, AnExceptionInASegmentOrInComputingItAgain) {
  const auto settings = all_again();
  const auto plain = steps_of(std::nullopt, new_deep());
  EXPECT_TRUE(same(steps_of(settings, new_deep()), plain));
  for (int round = 0; round < 2; ++round) {
    auto net = new_deep();
    torch::Tensor loss;
    {
      const Scope scope(settings);
      loss = net->forward(batch_of(kBatch, 1)).sum();
    }
    net->blocks[2]->within->fails = true;
    net->eval();
    torch::manual_seed(77);
    const auto next = torch::rand({3});
    torch::manual_seed(77);
    const auto means = means_of(*net);
    EXPECT_EQ(error_of([&] { loss.backward(); }), "in the block");
    EXPECT_TRUE(torch::rand({3}).equal(next));
    EXPECT_FALSE(net->blocks[2]->norm->is_training());
    EXPECT_TRUE(same({means_of(*net)}, {means}));
    net->train();
    {
      const Scope scope(settings);
      EXPECT_EQ(error_of([&] { net->forward(batch_of(kBatch, 1)); }), "in the block");
    }
  }
  EXPECT_EQ(held_bytes(settings), 0);
  const auto before = recomputed(settings);
  EXPECT_TRUE(same(steps_of(settings, new_deep()), plain));
  EXPECT_GE(recomputed(settings) - before, 5 * 4);
}

// A segment whose `run`th run another thread draws a random number beside; the error, if any.
std::string error_beside(const ScopeSettings& settings, int64_t run, double dropped) {
  int64_t runs = 0;
  const auto block = [&](torch::Tensor x) {
    if (++runs == run) std::thread([] { torch::rand({3}); }).join();
    return torch::dropout(x.exp(), dropped, true);
  };
  for (int step = 0; step < 3; ++step) {
    const auto x = torch::zeros({kBatch, kFeatures}, torch::requires_grad());
    torch::Tensor y;
    {
      const Scope scope(settings);
      y = segment(block, x);
    }
    const auto error = error_of([&] { y.sum().backward(); });
    if (!error.empty()) return error;
    EXPECT_TRUE(x.grad().equal(y)) << "what is 0 by chance has no gradient";
  }
  EXPECT_GE(runs, 5);
  return "";
}

TEST_F(SegmentChangesTest, RandomNumbersThatOtherThreadsDrawMeanwhileAreNoticed) {
  EXPECT_EQ(error_beside(all_again(), 3, 0.5), "") << "where it is computed again";
  EXPECT_THAT(error_beside(all_again(), 2, 0.5), HasSubstr("other threads draw some"));
  EXPECT_EQ(error_beside(all_again(), 2, 0), "") << "it draws none itself";
}

TEST_F(SegmentChangesTest, AForkedChildRunsThem) {
  const auto settings = all_again();
  auto net = new_deep();
  steps_of(settings, net, {kBatch, kBatch});
  const Scope scope(settings);
  const auto child = fork();
  if (child == 0) {
    const auto x = batch_of(kBatch, 1).requires_grad_();
    segment([](torch::Tensor y) { return y.exp(); }, x).sum().backward();
    _exit(x.grad().equal(x.exp()) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace tierpilot::swap
