#include "policies/sharing/card/onnx_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/random.h"
#include "tests/unit/sharing/onnx_models.h"

namespace tierpilot::sharing {
namespace {

TEST(OnnxModel, CountsWhatAPerceptronComputes) {
  const auto card = describe(perceptron(), 16);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->parameters, 40);
  EXPECT_EQ(card->parameter_bytes, 160);
  EXPECT_EQ(card->input_elements, 128);
  EXPECT_EQ(card->depth, 3U);
  const auto& products = card->operators.at("MatMul");
  EXPECT_EQ(products.count, 2U);
  EXPECT_EQ(products.largest_input, 128);
  EXPECT_EQ(products.input_sum, 128 + 64);
  EXPECT_EQ(products.flops, 16 * 2 * (8 * 4 + 4 * 2));
  EXPECT_EQ(card->operators.at("ReLU").flops, 64);
  EXPECT_EQ(card->activation_bytes, 4 * (64 + 64 + 32));
  EXPECT_FALSE(card->uncertain());
  const auto guessed = describe(perceptron(), std::nullopt);
  ASSERT_TRUE(guessed) << guessed.error().message;
  EXPECT_EQ(guessed->guessed.size(), 1U) << "the batch, which nobody told";
  EXPECT_EQ(card_json(*card)["kind"], "model card");
}

TEST(OnnxModel, TheBatchIsTheFirstDimensionOfTheFirstInput) {
  auto fixed = perceptron();
  fixed.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(4);
  for (const auto batch : {std::optional<uint32_t>(), std::optional(4U)}) {
    const auto card = describe(fixed, batch);
    ASSERT_TRUE(card) << card.error().message;
    EXPECT_EQ(card->batch, 4U);
    EXPECT_EQ(card->input_elements, 32);
    EXPECT_FALSE(card->uncertain());
  }
  const auto other = describe(fixed, 4096);
  ASSERT_FALSE(other) << "its sizes are those of 4";
  EXPECT_EQ(other.error().code, ErrorCode::kInvalid);
  for (const char* word : {"'x'", "4", "--batch"})
    EXPECT_NE(other.error().message.find(word), std::string::npos) << other.error().message;
  EXPECT_EQ(describe(perceptron())->batch, 1U);
  EXPECT_EQ(describe(perceptron(), 4096)->batch, 4096U);
  // A number, and a parameter that old files list as an input, come first.
  auto later = fixed;
  auto& inputs = *later.mutable_graph()->mutable_input();
  *inputs.Add() = inputs[0];
  inputs[0].set_name("w1");
  inputs[0].mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(
      8);
  *inputs.Add() = inputs[1];
  inputs[2].set_name("x");
  inputs[1].set_name("rate");
  inputs[1].mutable_type()->mutable_tensor_type()->mutable_shape()->clear_dim();
  const auto third = describe(later);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->batch, 4U);
}

onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const char* name,
                                    const std::vector<int64_t>& values) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const auto value : values) attribute.add_ints(value);
  return attribute;
}

// N x 3 x 8 x 8 -> Conv
onnx::ModelProto convolution(const char* attribute, const std::vector<int64_t>& values) {
  auto model = perceptron();
  auto& graph = *model.mutable_graph();
  graph.clear_node();
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.mutable_dim(1)->set_dim_value(3);
  shape.add_dim()->set_dim_value(8);
  shape.add_dim()->set_dim_value(8);
  add_parameter(graph, "filter", {4, 3, 3, 3});
  add_node(graph, "Conv", {"x", "filter"}, "y");
  add_attribute(*graph.mutable_node(0), attribute, values);
  return model;
}

TEST(OnnxModel, AnAttributeThatNothingCanBeDividedByIsNamedWithItsOperator) {
  ASSERT_TRUE(describe(convolution("strides", {2, 2})));
  for (const char* attribute : {"strides", "dilations", "kernel_shape"})
    for (const int64_t value : {int64_t{0}, int64_t{-1}}) {
      auto model = convolution(attribute, {2, value});
      const auto unnamed = describe(model);
      ASSERT_FALSE(unnamed) << attribute;
      for (const std::string& word :
           {std::string("Conv"), std::string("'y'"), "'" + std::string(attribute) + "'"})
        EXPECT_NE(unnamed.error().message.find(word), std::string::npos) << unnamed.error().message;
      model.mutable_graph()->mutable_node(0)->set_name("stem/conv1");
      EXPECT_NE(describe(model).error().message.find("'stem/conv1' (Conv)"), std::string::npos);
    }
  auto group = convolution("strides", {1, 1});
  auto* attribute = group.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->set_name("group");
  attribute->set_type(onnx::AttributeProto::INT);
  EXPECT_FALSE(describe(group));
  attribute->set_i(1);
  EXPECT_TRUE(describe(group));
}

// Sizes that the graph computes from that of its input: as recurrent nets are exported, and
// attention, which is cut into thirds.
class ComputedSizes : public testing::Test {
 protected:
  ComputedSizes() {
    graph_.mutable_output(0)->set_name("z");
    constant("first", {0});
    add_node(graph_, "Shape", {"x"}, "shape");
  }
  void constant(const char* name, const std::vector<int64_t>& values) {
    auto* tensor = graph_.add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    for (const auto value : values) tensor->add_int64_data(value);
  }
  onnx::ModelProto model_ = perceptron();
  onnx::GraphProto& graph_ = *model_.mutable_graph();
};

TEST_F(ComputedSizes, OfAConstantAreKnown) {
  constant("sizes", {2, 3});
  add_node(graph_, "Gather", {"shape", "first"}, "batch");
  add_node(graph_, "Concat", {"batch", "sizes"}, "wanted");
  auto* axis = graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
  axis->set_name("axis");
  axis->set_type(onnx::AttributeProto::INT);
  add_node(graph_, "ConstantOfShape", {"wanted"}, "z");
  const auto card = describe(model_, 5);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->unknown_shapes, 0U);
}

TEST_F(ComputedSizes, OfASliceAreKnownAndOperatorsStayWhatTheyAre) {
  constant("second", {1});
  constant("thirds", {3});
  constant("twice", {2});
  add_node(graph_, "Gather", {"shape", "second"}, "width");
  add_node(graph_, "Add", {"width", "second"}, "padded");
  add_node(graph_, "Div", {"padded", "thirds"}, "third");
  add_node(graph_, "Mul", {"third", "twice"}, "end");
  add_node(graph_, "Slice", {"x", "third", "end", "second"}, "z");
  const auto card = describe(model_, 5);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->unknown_shapes, 0U);
  EXPECT_EQ(card->operators.at("Shape").output_sum, 2 + 5 * 3) << "of 8, from 3 to 6";
  EXPECT_EQ(card->operators.at("Mul").count, 2U) << "Div and Mul";
  EXPECT_EQ(card->operators.at("AddV2").count, 1U);
}

TEST_F(ComputedSizes, ByDivisionsByNothingStayUnknown) {
  constant("second", {1});
  constant("none", {0});
  add_node(graph_, "Gather", {"shape", "second"}, "width");
  add_node(graph_, "Div", {"width", "none"}, "third");
  add_node(graph_, "Slice", {"x", "none", "third", "second"}, "z");
  const auto card = describe(model_, 5);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->unknown_shapes, 1U);
}

// docs/reference/operator-kinds.md: its second column is of ONNX.
TEST(OnnxModel, KindsAreThoseOfTheDocumentedTable) {
  std::ifstream table(std::filesystem::path(MEASURED) /
                      "../../../docs/reference/operator-kinds.md");
  size_t operators = 0;
  std::set<std::string> kinds;
  for (std::string line; std::getline(table, line);) {
    std::istringstream cells(line);
    std::string bar, kind, name;
    if (!(cells >> bar >> kind) || bar != "|" || kind == "kind") continue;
    kinds.insert(kind);
    for (cells >> bar; cells >> name && name != "|"; ++operators)
      EXPECT_EQ(operator_kind(name), kind) << name;
  }
  EXPECT_GT(operators, 100U);
  kinds.insert("Unknown");
  const auto all = operator_kinds();
  EXPECT_EQ(kinds, std::set<std::string>(all.begin(), all.end()));
}

// As exporters write what is open; what is made there is inferred.
TEST(OnnxModel, SizesOfNothingAreOpenWhereverTheyStand) {
  const auto wanted = describe(perceptron(), 5);
  ASSERT_TRUE(wanted);
  for (const int64_t open : {int64_t{-1}, int64_t{0}}) {
    auto model = perceptron();
    auto& graph = *model.mutable_graph();
    const auto say = [&](onnx::ValueInfoProto& info, const char* name, int64_t columns) {
      info.set_name(name);
      auto& type = *info.mutable_type()->mutable_tensor_type();
      type.set_elem_type(onnx::TensorProto::FLOAT);
      type.mutable_shape()->add_dim()->set_dim_value(open);
      type.mutable_shape()->add_dim()->set_dim_value(columns);
    };
    graph.clear_output();
    say(*graph.add_output(), "y", 2);
    say(*graph.add_value_info(), "h", 4);
    const auto card = describe(model, 5);
    ASSERT_TRUE(card) << card.error().message;
    EXPECT_EQ(card->flops, wanted->flops) << open;
    EXPECT_EQ(card->activation_bytes, wanted->activation_bytes) << open;
    EXPECT_FALSE(card->uncertain()) << open;
  }
}

TEST(OnnxModel, AnUnknownOperatorIsCountedAndTold) {
  auto model = perceptron();
  add_node(*model.mutable_graph(), "Frob\x01nicate", {"y"}, "z");
  model.mutable_graph()->mutable_node(3)->set_domain("my.org");
  const auto card = describe(model);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->unknown_operators, (std::map<std::string, uint64_t>{{"my.org.Frob?nicate", 1}}));
  EXPECT_TRUE(card->uncertain());
  EXPECT_EQ(card->operators.at("MatMul").flops, 2 * (8 * 4 + 4 * 2));  // the rest is known
}

TEST(OnnxModel, RefusesCirclesAndValuesThatNobodyMakes) {
  auto circle = perceptron();
  circle.mutable_graph()->mutable_node(0)->set_input(0, "y");
  EXPECT_FALSE(describe(circle));
  auto missing = perceptron();
  missing.mutable_graph()->mutable_node(1)->set_input(0, "nothing");
  const auto wrong = describe(missing);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("nothing"), std::string::npos);
  auto twice = perceptron();
  twice.mutable_graph()->mutable_node(1)->set_output(0, "h");
  EXPECT_FALSE(describe(twice));
}

TEST(OnnxModel, RefusesSizesThatNoMachineHas) {
  auto huge = perceptron();
  huge.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 62);
  EXPECT_FALSE(describe(huge));
  auto negative = perceptron();
  negative.mutable_graph()->mutable_initializer(0)->set_dims(0, -1);
  EXPECT_FALSE(describe(negative));
}

TEST(OnnxModel, RefusesBodiesThatAreNestedTooDeep) {
  auto model = perceptron();
  auto* graph = model.mutable_graph();
  for (int i = 0; i < 30; ++i) {
    add_node(*graph, "If", {}, "o");
    auto* attribute = graph->mutable_node(graph->node_size() - 1)->add_attribute();
    attribute->set_name("then_branch");
    graph = attribute->mutable_g();
  }
  EXPECT_FALSE(describe(model));
}

TEST(OnnxModel, NoBytesAndAnyBytesAreNoModel) {
  EXPECT_FALSE(describe_onnx("", "m.onnx", 1));
  EXPECT_FALSE(describe_onnx("hello", "m.onnx", 1));
}

// A changed byte gives a card or an error, and never ends the process.
TEST(OnnxModel, AnyChangedByteIsSurvived) {
  const std::string good = perceptron().SerializeAsString();
  SeededRandom random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good.substr(0, i % 3 ? good.size() : random.below(good.size()));
    for (int changes = 0; changes < 3 && !bytes.empty(); ++changes)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    const auto card = describe_onnx(bytes, "m.onnx", 1);
    if (card) {
      EXPECT_GE(card->flops, 0);
    }
  }
}

TEST(OnnxModel, KindsHaveThePublishedNames) {
  EXPECT_EQ(operator_kind("Conv"), "Conv2D");
  EXPECT_EQ(operator_kind("Add"), "AddV2");
  EXPECT_EQ(operator_kind("Gemm"), "MatMul");
  EXPECT_EQ(operator_kind("AveragePool"), "AvgPool");
  EXPECT_EQ(operator_kind("Where"), "Elementwise");
  EXPECT_EQ(operator_kind("Abs"), "Elementwise");
  EXPECT_EQ(operator_kind("Relu"), "ReLU");
  EXPECT_EQ(operator_kind("Sqrt"), "Elementwise");
  EXPECT_EQ(operator_kind("conv"), "");
}

}  // namespace
}  // namespace tierpilot::sharing
