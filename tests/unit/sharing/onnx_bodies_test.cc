// What If, Loop and Scan run is read as the top graph is.
#include <gtest/gtest.h>

#include <ctime>

#include "tests/unit/sharing/onnx_models.h"

namespace tierpilot::sharing {
namespace {

// z is x (4 x 64) times a weight of the branch's own, then of 64 x `columns`; nothing tells the
// sizes of what is made.
void add_branch(onnx::NodeProto& node, const std::string& name, int64_t columns) {
  auto& branch = add_body(node, name);
  add_parameter(branch, "w", {64, columns});
  add_node(branch, "MatMul", {"x", "w"}, name + "/h");
  add_node(branch, "Relu", {name + "/h"}, name + "/o");
  set_value(*branch.add_output(), name + "/o", {4, columns});
}

onnx::ModelProto choice() {
  auto model = empty_model({{"x", {4, 64}}});
  auto& graph = *model.mutable_graph();
  set_value(*graph.add_input(), "c", {}, onnx::TensorProto::BOOL);
  auto& node = add_node(graph, "If", {"c"}, "z");
  add_branch(node, "then_branch", 32);
  add_branch(node, "else_branch", 8);
  return model;
}

TEST(OnnxBodies, OfAChoiceHaveParametersSizesAndCosts) {
  const auto card = describe(choice());
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->parameters, 64 * (32 + 8)) << "each branch has a 'w' of its own";
  EXPECT_EQ(card->parameter_tensors, 2U);
  const auto& products = card->operators.at("MatMul");
  EXPECT_EQ(products.flops, 2 * 4 * 64 * (32 + 8));
  EXPECT_EQ(products.input_sum, 2 * 4 * 64) << "x is outside";
  EXPECT_EQ(products.parameter_sum, 64 * (32 + 8));
  EXPECT_EQ(card->operators.at("ReLU").flops, 4 * (32 + 8));
  EXPECT_EQ(card->input_elements, 4 * 64 + 1);
  EXPECT_EQ(card->unknown_operators, (std::map<std::string, uint64_t>{{"If", 1}}));
  EXPECT_TRUE(card->uncertain());
  EXPECT_EQ(card->depth, 3U) << "the choice, and what it runs";
}

TEST(OnnxBodies, OfALoopSeeWhatIsOutside) {
  auto model = empty_model({{"x", {8, 64}}});
  auto& graph = *model.mutable_graph();
  add_parameter(graph, "W", {64, 64});
  set_value(*graph.add_input(), "n", {}, onnx::TensorProto::INT64);
  auto& loop = add_node(graph, "Loop", {"n", "", "x"}, "y");
  auto& body = add_body(loop, "body");
  set_value(*body.add_input(), "i", {}, onnx::TensorProto::INT64);
  set_value(*body.add_input(), "going", {}, onnx::TensorProto::BOOL);
  set_value(*body.add_input(), "h", {8, 64});
  add_node(body, "Identity", {"going"}, "on");
  add_node(body, "MatMul", {"h", "W"}, "h2");
  set_value(*body.add_output(), "on", {}, onnx::TensorProto::BOOL);
  set_value(*body.add_output(), "h2", {8, 64});
  add_node(graph, "Relu", {"y"}, "z");
  const auto card = describe(model);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->parameters, 64 * 64);
  EXPECT_EQ(card->operators.at("MatMul").flops, 2 * 8 * 64 * 64);
  EXPECT_EQ(card->operators.at("MatMul").parameter_sum, 64 * 64);
  EXPECT_EQ(card->depth, 3U) << "the loop, a product in it, and what takes its value";
}

TEST(OnnxBodies, MayNotMakeWhatIsMadeOutside) {
  auto model = choice();
  auto& branch = *model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g();
  branch.mutable_node(0)->set_output(0, "x");
  branch.mutable_node(1)->set_input(0, "x");
  EXPECT_FALSE(describe(model));
}

TEST(OnnxBodies, DoNotSeeEachOther) {
  auto model = choice();
  auto& other = *model.mutable_graph()->mutable_node(0)->mutable_attribute(1)->mutable_g();
  other.mutable_node(1)->set_input(0, "then_branch/h");
  EXPECT_FALSE(describe(model));
}

TEST(OnnxBodies, ThatAreManyTakeNoTimeForTheNamesOutside) {
  auto model = empty_model({{"x", {4}}});
  auto& graph = *model.mutable_graph();
  set_value(*graph.add_input(), "c", {}, onnx::TensorProto::BOOL);
  for (int i = 0; i < 20'000; ++i) {
    auto& node = add_node(graph, "If", {"c"}, "o" + std::to_string(i));
    for (const char* name : {"then_branch", "else_branch"}) {
      auto& branch = add_body(node, name);
      add_node(branch, "Relu", {"x"}, "o");
      set_value(*branch.add_output(), "o", {4});
    }
  }
  const auto begin = std::clock();
  const auto card = describe(model);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->operators.at("ReLU").count, 40'000U);
  EXPECT_EQ(card->operators.at("ReLU").flops, 40'000 * 4);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 20);
}

}  // namespace
}  // namespace tierpilot::sharing
