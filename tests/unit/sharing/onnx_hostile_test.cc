// Cards of ONNX files that were made to do harm.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/random.h"
#include "policies/sharing/card/card_reader.h"
#include "tests/unit/sharing/onnx_models.h"

namespace tierpilot::sharing {
namespace {

// In capitals, so that what is left of it is found.
const std::string kRude = "\x1b[31mRED\x1b]0;own\x07\n" + std::string(3'000'000, 'A');

void expect_plain(const Result<ModelCard>& card) {
  ASSERT_FALSE(card);
  EXPECT_LT(card.error().message.size(), 1000U);
  for (const char c : card.error().message) EXPECT_TRUE(c >= ' ' && c <= '~') << int(c);
}

TEST(HostileOnnx, NamesInMessagesArePlainAndShort) {
  auto missing = perceptron();
  missing.mutable_graph()->mutable_node(1)->set_name(kRude);
  missing.mutable_graph()->mutable_node(1)->set_input(0, kRude);
  expect_plain(describe(missing));
  EXPECT_NE(describe(missing).error().message.find("RED"), std::string::npos);
  auto type = perceptron();
  type.mutable_graph()->mutable_node(1)->set_op_type(kRude);
  type.mutable_graph()->mutable_node(1)->set_output(0, kRude);
  type.mutable_graph()->mutable_node(1)->set_input(0, "nothing");
  expect_plain(describe(type));
  auto negative = perceptron();
  add_parameter(*negative.mutable_graph(), kRude, {-1});
  expect_plain(describe(negative));
  auto twice = perceptron();
  for (int i = 0; i < 2; ++i) add_parameter(*twice.mutable_graph(), kRude, {1});
  expect_plain(describe(twice));
  auto batch = empty_model({{kRude, {4, 8}}});
  add_node(*batch.mutable_graph(), "Relu", {kRude}, "z");
  expect_plain(describe(batch, 5));
}

// What the command prints can be given to those who read cards.
void expect_readable(const onnx::ModelProto& model) {
  const auto card = describe(model);
  ASSERT_TRUE(card) << card.error().message;
  auto value = card_json(*card);
  value["schema"] = 1;
  const auto read = read_card(value.dump(4));
  EXPECT_TRUE(read) << read.error().message;
}

TEST(HostileOnnx, OpenSizesThatAreManyAreToldInPart) {
  auto model = empty_model({});
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(std::string(10'000, '"') + std::to_string(i));
  for (const auto& name : names) {
    set_value(*model.mutable_graph()->add_input(), name, {4});
    model.mutable_graph()
        ->mutable_input(model.graph().input_size() - 1)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param("N");
  }
  add_node(*model.mutable_graph(), "Sum", names, "z");
  expect_readable(model);
  const auto card = describe(model);
  ASSERT_FALSE(card->guessed.empty());
  EXPECT_LE(card->guessed.size(), 256U);
  EXPECT_EQ(card->guessed.back(), std::to_string(301 - card->guessed.size()) + " others");
}

TEST(HostileOnnx, OperatorsThatNobodyKnowsKeepTheCardSmall) {
  auto model = perceptron();
  for (int i = 0; i < 2000; ++i)
    add_node(*model.mutable_graph(), std::to_string(i) + std::string(5000, '\\'), {"y"},
             "o" + std::to_string(i));
  expect_readable(model);
}

TEST(HostileOnnx, FiguresThatNoCardMayHaveAreRefused) {
  auto model = empty_model({{"x", {10'000'000, 1'000'000}}});
  add_parameter(*model.mutable_graph(), "w", {1'000'000, 10'000'000});
  add_node(*model.mutable_graph(), "MatMul", {"x", "w"}, "z");
  const auto card = describe(model);
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, ErrorCode::kInvalid);
  for (const char* word : {"m.onnx", "flops", "1e+18"})
    EXPECT_NE(card.error().message.find(word), std::string::npos) << card.error().message;
}

// ONNX's own readers copy as many bytes as there are to where there is room for what they take for
// numbers of them.
TEST(HostileOnnx, BytesThatAreNotThoseOfTheDimensionsAreRefused) {
  for (const size_t bytes : {1, 3, 8, 12, 31, 33, 40, 4095})
    for (const bool in_constant : {false, true}) {
      auto model = empty_model({{"x", {4, 6}}});
      auto& graph = *model.mutable_graph();
      onnx::AttributeProto value;
      value.set_name("value");
      value.set_type(onnx::AttributeProto::TENSOR);
      auto& tensor = *value.mutable_t();
      tensor.set_name("shape");
      tensor.set_data_type(onnx::TensorProto::INT64);
      tensor.add_dims(4);
      tensor.set_raw_data(std::string(bytes, '\1'));
      if (in_constant)
        *add_node(graph, "Constant", {}, "shape").add_attribute() = value;
      else
        *graph.add_initializer() = tensor;
      add_node(graph, "Reshape", {"x", "shape"}, "z");
      const auto card = describe(model);
      ASSERT_FALSE(card) << bytes;
      for (const char* word : {"'shape'", "32", "export it again"})
        EXPECT_NE(card.error().message.find(word), std::string::npos) << card.error().message;
    }
}

TEST(HostileOnnx, ABatchThatIsTooLargeIsRefusedWithTheLimit) {
  auto model = empty_model({{"x", {int64_t{1} << 62, 3}}});
  add_node(*model.mutable_graph(), "Relu", {"x"}, "z");
  const auto card = describe(model);
  ASSERT_FALSE(card);
  for (const char* word : {"'x'", "4611686018427387904", "4000000000"})
    EXPECT_NE(card.error().message.find(word), std::string::npos) << card.error().message;
}

TEST(HostileOnnx, SizesThatDivideToNoNumberAreNotFolded) {
  auto model = empty_model({{"x", {2, 3}}});
  auto& graph = *model.mutable_graph();
  for (const auto& [name, value] :
       {std::pair("least", INT64_MIN), std::pair("minus", int64_t{-1})}) {
    auto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_int64_data(value);
    tensor.add_dims(1);
  }
  for (const char* operation : {"Div", "Add", "Sub", "Mul"})
    add_node(graph, operation, {"least", "minus"}, operation);
  add_node(graph, "Reshape", {"x", "Div"}, "z");
  (void)describe(model);
}

// Each has almost twice the dimensions of the one before.
TEST(HostileOnnx, DimensionsThatDoubleEndAtTheFirstThatIsTooLarge) {
  auto model = empty_model({});
  auto& graph = *model.mutable_graph();
  set_value(*graph.add_input(), "v0", {1, 1}, onnx::TensorProto::INT64);
  for (int i = 0; i < 60; ++i) {
    const auto from = "v" + std::to_string(i);
    add_node(graph, "Gather", {from, from}, "v" + std::to_string(i + 1));
  }
  const auto card = describe(model);
  ASSERT_FALSE(card);
  EXPECT_NE(card.error().message.find("'v6' has 65 dimensions"), std::string::npos)
      << card.error().message;
}

// So has what is known of sizes: as values of a tensor that tells a shape.
TEST(HostileOnnx, SizesThatDoubleAreNotKept) {
  auto model = empty_model({{"x", {2, 3}}});
  auto& graph = *model.mutable_graph();
  add_node(graph, "Shape", {"x"}, "v0");
  for (int i = 0; i < 60; ++i) {
    const auto from = "v" + std::to_string(i);
    auto& axis =
        *add_node(graph, "Concat", {from, from}, "v" + std::to_string(i + 1)).add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
  }
  const auto card = describe(model);
  ASSERT_FALSE(card);
  EXPECT_NE(card.error().message.find("'v"), std::string::npos) << card.error().message;
}

template <class Number>
void add_values(onnx::GraphProto& graph, const std::string& name, const std::vector<Number>& values,
                bool is_scalar = false) {
  auto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  if (!is_scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
  constexpr bool kWhole = std::is_same_v<Number, int64_t>;
  tensor.set_data_type(kWhole ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  for (const auto value : values)
    if constexpr (kWhole)
      tensor.add_int64_data(value);
    else
      tensor.add_float_data(value);
}

void set_ints(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto& added = *node.add_attribute();
  added.set_name(name);
  added.set_type(onnx::AttributeProto::INTS);
  for (const auto value : values) added.add_ints(value);
}

void expect_unknown(const onnx::ModelProto& model, const std::string& what) {
  const auto card = describe(model);
  ASSERT_TRUE(card) << what << card.error().message;
  EXPECT_GT(card->unknown_shapes, 0U) << what;
  EXPECT_TRUE(card->uncertain()) << what;
}

// ONNX's inference computes them in 64 bits, and what is over would be a small size, or none.
TEST(HostileOnnx, SizesThatOverflowAreUnknown) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const std::vector<std::pair<std::string, std::vector<int64_t>>> lists{
      {"Tile", {1, kHuge}},
      {"Tile", {1, kHuge + 1}},
      {"Pad", {0, INT64_MAX, 0, INT64_MAX}},
      {"Reshape", {int64_t{1} << 33, int64_t{1} << 32, -1}},
      {"Reshape", {(int64_t{1} << 62) + 1, 4, -1}}};
  for (const auto& [type, values] : lists) {
    auto model = empty_model({{"x", {1, 4}}});
    add_values(*model.mutable_graph(), "values", values);
    add_node(*model.mutable_graph(), type, {"x", "values"}, "z");
    expect_unknown(model, type);
  }
  auto resize = empty_model({{"x", {1, 1, 4, 4}}});
  add_values(*resize.mutable_graph(), "scales", std::vector<float>{1, 1, 1e30F, 1e30F});
  add_node(*resize.mutable_graph(), "Resize", {"x", "", "scales"}, "z");
  expect_unknown(resize, "Resize");
  auto range = empty_model({{"x", {1}}});
  add_values<float>(*range.mutable_graph(), "start", {0}, true);
  add_values<float>(*range.mutable_graph(), "limit", {1e30F}, true);
  add_values<float>(*range.mutable_graph(), "delta", {1e-6F}, true);
  add_node(*range.mutable_graph(), "Range", {"start", "limit", "delta"}, "z");
  expect_unknown(range, "Range");
}

TEST(HostileOnnx, SizesThatOverflowByAttributesAreUnknown) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const char* name : {"strides", "dilations"}) {
    auto model = empty_model({{"x", {1, 1, 5, 5}}});
    add_parameter(*model.mutable_graph(), "w", {1, 1, 5, 5});
    auto& graph = *model.mutable_graph();
    set_ints(add_node(graph, "ConvTranspose", {"x", "w"}, "z"), name, {kHuge, kHuge});
    expect_unknown(model, name);
  }
}

TEST(HostileOnnx, SizesOfSizesThatOverflowAreUnknown) {
  auto model = empty_model({{"x", {4}}});
  auto& graph = *model.mutable_graph();
  add_values<int64_t>(graph, "many", {int64_t{1} << 62});
  add_node(graph, "Shape", {"x"}, "size");
  add_node(graph, "Mul", {"size", "many"}, "product");
  add_node(graph, "ConstantOfShape", {"product"}, "z");
  expect_unknown(model, "Mul");
}

TEST(HostileOnnx, LargeSizesThatDoNotOverflowAreKnown) {
  auto model = empty_model({{"x", {1, 4}}});
  add_values<int64_t>(*model.mutable_graph(), "values", {1, int64_t{1} << 40});
  add_node(*model.mutable_graph(), "Tile", {"x", "values"}, "z");
  const auto card = describe(model);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->activation_bytes, 16 * std::ldexp(1, 40));
  EXPECT_FALSE(card->uncertain());
}

void expect_survival(const onnx::ModelProto& model, uint64_t seed) {
  const std::string good = model.SerializeAsString();
  ASSERT_TRUE(describe_onnx(good, "m.onnx", {}));
  SeededRandom random(seed);
  int cards = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    for (uint64_t changes = 1 + random.below(2); changes > 0; --changes)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    const auto card = describe_onnx(bytes, "m.onnx", {});
    cards += card.has_value();
    if (card) {
      EXPECT_GE(card->flops, 0);
    }
  }
  EXPECT_GT(cards, 100);
}

// Bodies, an Einsum, weights in constants and sparse ones: any changed byte gives a card or an
// error.
TEST(HostileOnnx, AnyChangedByteIsSurvived) {
  auto choice = empty_model({{"x", {4, 8}}});
  set_value(*choice.mutable_graph()->add_input(), "c", {}, onnx::TensorProto::BOOL);
  auto& branches = add_node(*choice.mutable_graph(), "If", {"c"}, "z");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& branch = add_body(branches, name);
    add_parameter(branch, "w", {8, 8});
    add_node(branch, "MatMul", {"x", "w"}, "o");
    set_value(*branch.add_output(), "o", {4, 8});
  }
  expect_survival(choice, 1);

  auto product = empty_model({{"x", {4, 8}}});
  auto& graph = *product.mutable_graph();
  auto& weight = *add_node(graph, "Constant", {}, "w").add_attribute();
  weight.set_name("value");
  weight.set_type(onnx::AttributeProto::TENSOR);
  weight.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  weight.mutable_t()->add_dims(8);
  weight.mutable_t()->add_dims(128);
  auto& equation = *add_node(graph, "Einsum", {"x", "w"}, "y").add_attribute();
  equation.set_name("equation");
  equation.set_type(onnx::AttributeProto::STRING);
  equation.set_s("...i,ij->...j");
  auto& sparse = *graph.add_sparse_initializer();
  sparse.mutable_values()->set_name("s");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(3);
  sparse.add_dims(128);
  sparse.add_dims(2);
  add_node(graph, "MatMul", {"y", "s"}, "z");
  expect_survival(product, 2);
}

}  // namespace
}  // namespace tierpilot::sharing
