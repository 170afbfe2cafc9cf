// Memory that several counters of versions are of, that is changed behind all of them, or that
// another one replaces; and tensors that are none of a storage.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tests/support/long_form.h"
#include "tests/unit/swap_libtorch/scene.h"

namespace tierpilot::swap {
namespace {

constexpr const char* kChanged = "modified by an inplace operation";

class VersionsTest : public testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

ScopeSettings nothing_leaves(const std::string& tiers) {
  return {.budget = kRoom, .policy = "none", .tiers = tiers};
}

torch::Tensor weights() {
  torch::manual_seed(3);
  return torch::randn({256, 512}, torch::requires_grad());
}

// Of two steps of a layer of 128 units, its input first.
template <class Layer, class Options>
std::vector<Tensors> gradients_of_recurrent(const std::optional<ScopeSettings>& settings) {
  torch::manual_seed(5);
  Layer layer(Options(64, 128));
  std::vector<Tensors> all;
  for (int step = 0; step < 2; ++step) {
    const auto x = torch::randn({20, 128, 64}, torch::requires_grad());
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (settings) scope.emplace(*settings);
      loss = std::get<0>(layer->forward(x)).square().sum();
    }
    layer->zero_grad();
    loss.backward();
    auto& gradients = all.emplace_back(Tensors{x.grad()});
    for (const auto& each : layer->parameters()) gradients.push_back(each.grad().clone());
  }
  return all;
}

// Their gates are unsafe_chunk's: one storage, a counter each.
TEST_F(VersionsTest, GradientsOfRecurrentLayersAreThoseWithout) {
  namespace nn = torch::nn;
  const auto lstm = gradients_of_recurrent<nn::LSTM, nn::LSTMOptions>(std::nullopt);
  const auto gru = gradients_of_recurrent<nn::GRU, nn::GRUOptions>(std::nullopt);
  // One of whose tensors all leave, and those that find no room for them.
  std::vector<std::pair<const char*, std::string>> ways{{"swap-all", kRoom}, {"swap", "1MiB"}};
  if (test::long_form())
    for (const auto* policy : {"swap-all", "capuchin", "q-published", "checkpoint"})
      ways.emplace_back(policy, "1MiB");
  for (const auto& [policy, budget] : ways) {
    const ScopeSettings settings{.budget = budget, .policy = policy, .tiers = "memory=512MiB"};
    const auto name = policy + (' ' + budget);
    EXPECT_TRUE(same(gradients_of_recurrent<nn::LSTM, nn::LSTMOptions>(settings), lstm)) << name;
    EXPECT_TRUE(same(gradients_of_recurrent<nn::GRU, nn::GRUOptions>(settings), gru)) << name;
    EXPECT_EQ(held_bytes(settings), 0) << name;
    if (policy == std::string("swap-all")) {
      EXPECT_GT(statistics_of(settings)["copies_in"], 0);
    }
  }
}

TEST_F(VersionsTest, TensorsOfOneStorageWithACounterEachAreToldApart) {
  const auto settings = everything_leaves("memory=511MiB");
  const auto gradients = [&](bool scoped) {
    torch::manual_seed(5);
    torch::nn::Linear layer(64, 256);
    const auto x = torch::randn({128, 64});
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (scoped) scope.emplace(settings);
      auto halves = layer(x).unsafe_chunk(2, 1);
      halves[0].sigmoid_();
      if (scoped) let_copies_end(settings);
      halves[1].tanh_();
      loss = (halves[0] * halves[1]).sum();
    }
    if (scoped) let_leave(settings);
    loss.backward();
    return Tensors{layer->weight.grad(), layer->bias.grad()};
  };
  EXPECT_TRUE(same({gradients(true)}, {gradients(false)}));
}

TEST_F(VersionsTest, ViewsAndDetachedTensorsHaveTheCounterOfTheirBase) {
  const auto settings = nothing_leaves("memory=511MiB");
  const auto w = weights();
  const auto before = statistics_of(settings)["saves"].get<int>();
  const Scope scope(settings);
  const auto made = weights() * 1;
  const auto sum = (made * w).sum() + (made.view({-1}) * w.view({-1})).sum() +
                   (made.t() * w.t()).sum() + made.square().sum();
  EXPECT_EQ(statistics_of(settings)["saves"].get<int>() - before, 1);
  EXPECT_TRUE(sum.requires_grad());
}

TEST_F(VersionsTest, AnInputThatIsRefilledBehindItsCounterIsSavedAnew) {
  const auto settings = everything_leaves("memory=510MiB");
  const auto w = weights();
  const auto x = torch::randn({256, 512});
  torch::Tensor first, second;
  {
    const Scope scope(settings);
    first = (x * w).sum();
    let_copies_end(settings);
    x.data().mul_(2);
    second = (x * w).sum();
  }
  let_leave(settings);
  EXPECT_TRUE(torch::autograd::grad({second}, {w})[0].equal(x));
  EXPECT_TRUE(torch::autograd::grad({first}, {w})[0].defined());
  EXPECT_EQ(held_bytes(settings), 0);
}

TEST_F(VersionsTest, AParameterThatGetsOtherDataCountsWithTheseAsWithout) {
  const auto gradient = [](const std::optional<ScopeSettings>& settings) {
    const auto w = weights(), x = weights();
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (settings) scope.emplace(*settings);
      loss = (w * x).sum();
    }
    w.set_data(torch::full({256, 512}, 5.F));
    return torch::autograd::grad({loss}, {x})[0];
  };
  const auto expected = gradient(std::nullopt);
  EXPECT_TRUE(gradient(everything_leaves("memory=499MiB")).equal(expected));
  EXPECT_TRUE(gradient(nothing_leaves("memory=499MiB")).equal(expected));
}

TEST_F(VersionsTest, MemoryThatIsNotTorchsOwnStays) {
  const auto settings = everything_leaves("memory=509MiB");
  const auto w = weights();
  std::vector<float> memory(256 * 512, 3);
  const auto x = torch::from_blob(memory.data(), {256, 512});
  torch::Tensor loss;
  {
    const Scope scope(settings);
    loss = (x * w).sum();
  }
  let_leave(settings);
  std::fill(memory.begin(), memory.end(), 4);
  loss.backward();
  EXPECT_TRUE(w.grad().equal(torch::full({256, 512}, 4)));
}

// Two names of one memory, and what the loss over the second one says once one of them is changed.
std::string error_after_change(bool of_the_second) {
  const Scope scope(nothing_leaves("memory=508MiB"));
  const auto w = weights();
  const auto x = weights() * 1;
  const auto other = x.data();
  const auto before = (x * w).sum(), loss = (other * w).sum();
  const torch::NoGradGuard quiet;
  (of_the_second ? other : x).add_(of_the_second ? 1 : 0);
  return error_of([&] { loss.backward(); });
}

TEST_F(VersionsTest, EachTensorIsCheckedByItsOwnCounter) {
  EXPECT_NE(error_after_change(true).find(kChanged), std::string::npos);
  EXPECT_EQ(error_after_change(false), "");
}

// Its backward pass changes what it saved.
struct Spoiling : torch::autograd::Function<Spoiling> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x) {
    context->save_for_backward({x});
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    context->get_saved_variables()[0].add_(1);
    return gradients;
  }
};

// The first one also saves it; `view`: as another tensor of its storage.
std::string error_of_spoiling(const std::optional<ScopeSettings>& settings, bool view,
                              bool leaves) {
  const auto p = weights(), w = weights();
  torch::Tensor loss;
  {
    std::optional<Scope> scope;
    if (settings) scope.emplace(*settings);
    const auto x = p * 1;
    loss = (x * w).sum();
    loss = loss + Spoiling::apply(view ? x.view({-1}) : x).sum();
  }
  if (leaves) let_leave(*settings);
  return error_of([&] { loss.backward(); });
}

TEST_F(VersionsTest, ABackwardPassThatChangesWhatAnotherWaitsForIsRefusedAsAutogradDoes) {
  for (const bool view : {false, true}) {
    const std::string tiers = view ? "memory=501MiB" : "memory=507MiB";
    const auto leaving = everything_leaves(tiers);
    EXPECT_NE(error_of_spoiling(std::nullopt, view, false).find(kChanged), std::string::npos);
    EXPECT_NE(error_of_spoiling(nothing_leaves(tiers), view, false).find(kChanged),
              std::string::npos);
    EXPECT_NE(error_of_spoiling(leaving, view, true).find(kChanged), std::string::npos);
    EXPECT_GT(statistics_of(leaving)["copies_in"], 0);
    EXPECT_EQ(held_bytes(leaving), 0);
  }
}

// What it had before, whose address nobody else gets until that is freed.
c10::DataPtr replace_by_zeros(const c10::Storage& storage) {
  auto zeros = c10::GetAllocator(c10::kCPU)->allocate(storage.nbytes());
  std::memset(zeros.get(), 0, storage.nbytes());
  return storage.set_data_ptr(std::move(zeros));
}

// Of a product by what then gets zeros for its memory; nothing: that had left before.
std::optional<torch::Tensor> loss_of_replaced(const std::optional<ScopeSettings>& settings,
                                              const torch::Tensor& w) {
  std::optional<Scope> scope;
  if (settings) scope.emplace(*settings);
  const auto x = weights() * 1;
  auto loss = (x * w).sum();
  if (settings) let_copies_end(*settings);
  const auto storage = x.storage();
  constexpr size_t kOwn = 2;  // `storage` and the tensor
  if (settings && storage.use_count() == kOwn) return std::nullopt;
  const auto before = replace_by_zeros(storage);
  if (settings) let_leave(*settings);
  return loss;
}

TEST_F(VersionsTest, AStorageWhoseMemoryIsReplacedStays) {
  const auto w = weights();
  const auto gradient = [&](const torch::Tensor& loss) {
    return torch::autograd::grad({loss}, {w}, {}, true)[0];
  };
  const auto expected = gradient(*loss_of_replaced(std::nullopt, w));
  EXPECT_TRUE(expected.equal(torch::zeros({256, 512})));
  const auto settings = everything_leaves("memory=506MiB");
  std::optional<torch::Tensor> loss;
  while (!loss) loss = loss_of_replaced(settings, w);
  EXPECT_TRUE(gradient(*loss).equal(expected));
  EXPECT_TRUE(gradient(*loss).equal(expected)) << "once more";
  loss.reset();
  EXPECT_EQ(held_bytes(settings), 0);
}

TEST_F(VersionsTest, MemoryThatReplacesWhatHasLeftIsSavedAnew) {
  const auto settings = everything_leaves("memory=500MiB");
  const auto w = weights();
  const auto x = weights() * 1;
  const Scope scope(settings);
  const auto first = (x * w).sum();
  let_leave(settings);
  const auto expected = x.clone();
  const auto before = replace_by_zeros(x.storage());
  const auto second = (x * w).sum();
  EXPECT_TRUE(torch::autograd::grad({second}, {w})[0].equal(torch::zeros({256, 512})));
  EXPECT_TRUE(torch::autograd::grad({first}, {w})[0].equal(expected));
}

TEST_F(VersionsTest, TensorsWithoutMemoryAreLeftAlone) {
  const auto settings = everything_leaves("memory=505MiB");
  const auto w = weights();
  const auto gradient = [&](bool scoped) {
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (scoped) scope.emplace(settings);
      loss = (w * at::_efficientzerotensor({256, 512})).sum();
    }
    if (scoped) let_leave(settings);
    return torch::autograd::grad({loss}, {w})[0];
  };
  EXPECT_TRUE(gradient(true).equal(gradient(false)));
}

TEST_F(VersionsTest, NestedTensorsAreLeftAlone) {
  const auto settings = everything_leaves("memory=504MiB");
  const auto a = weights(), b = weights();
  const auto gradient = [&] {
    const auto nested = at::_nested_tensor_from_tensor_list({a, b});
    return torch::autograd::grad({(nested * nested).to_padded_tensor(0).sum()}, {a})[0];
  };
  const auto expected = gradient();
  const Scope scope(settings);
  EXPECT_TRUE(gradient().equal(expected));
}

TEST_F(VersionsTest, InferenceTensorsAreRefusedAsAutogradDoes) {
  const auto settings = everything_leaves("memory=503MiB");
  const Scope scope(settings);
  const auto w = weights();
  torch::Tensor x;
  {
    const c10::InferenceMode inference;
    x = w.exp();
  }
  const auto error = error_of([&] { (x * w).sum(); });
  EXPECT_NE(error.find("Inference tensors cannot be saved"), std::string::npos) << error;
  EXPECT_EQ(statistics_of(settings)["saves"], 0);
}

TEST_F(VersionsTest, ABackwardPassUnderInferenceMode) {
  const auto settings = everything_leaves("memory=502MiB");
  const auto w = weights();
  const auto gradient = [&](bool scoped) {
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (scoped) scope.emplace(settings);
      const auto x = w.exp();
      loss = (x * x.tanh() + x.view({-1}).exp().view({256, 512})).sum();
    }
    if (scoped) let_leave(settings);
    const c10::InferenceMode inference;
    return torch::autograd::grad({loss}, {w})[0];
  };
  const auto expected = gradient(false);
  EXPECT_TRUE(gradient(true).equal(expected));
}

}  // namespace
}  // namespace tierpilot::swap
