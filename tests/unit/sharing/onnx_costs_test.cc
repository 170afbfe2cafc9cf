// What operators and parameters of an ONNX model cost.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/unit/sharing/onnx_models.h"

namespace tierpilot::sharing {
namespace {

using Inputs = std::vector<std::pair<std::string, std::vector<int64_t>>>;

void set_output(onnx::ModelProto& model, const std::vector<int64_t>& dims) {
  model.mutable_graph()->mutable_output(0)->Clear();
  set_value(*model.mutable_graph()->mutable_output(0), "z", dims);
}

ModelCard card_of(const onnx::ModelProto& model) {
  auto card = describe(model);
  EXPECT_TRUE(card) << card.error().message;
  return card ? *card : ModelCard{};
}

onnx::AttributeProto& attribute_of(onnx::NodeProto& node, const char* name,
                                   onnx::AttributeProto::AttributeType type) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

void set_number(onnx::NodeProto& node, const char* name, int64_t value) {
  attribute_of(node, name, onnx::AttributeProto::INT).set_i(value);
}

void fill_sparse(onnx::SparseTensorProto& sparse, int64_t kept, const std::vector<int64_t>& dims) {
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(kept);
  for (const auto dim : dims) sparse.add_dims(dim);
}

void add_sparse(onnx::GraphProto& graph, const std::string& name, int64_t kept,
                const std::vector<int64_t>& dims) {
  auto& sparse = *graph.add_sparse_initializer();
  fill_sparse(sparse, kept, dims);
  sparse.mutable_values()->set_name(name);
}

TEST(OnnxCosts, AttentionIsTwoProductsWithTheKeys) {
  for (const auto& shape : {std::vector<int64_t>{2, 4, 128, 64}, {2, 128, 256}}) {
    auto keys = shape;
    keys[keys.size() - 2] = 512;
    auto model = empty_model({{"q", shape}, {"k", keys}, {"v", keys}});
    model.mutable_opset_import(0)->set_version(23);
    add_node(*model.mutable_graph(), "Attention", {"q", "k", "v"}, "z");
    set_output(model, shape);
    EXPECT_EQ(card_of(model).flops, 4.0 * 2 * 4 * 128 * 64 * 512);
  }
}

TEST(OnnxCosts, AttentionSeesThePastToo) {
  auto model = empty_model({{"q", {1, 2, 1, 8}},
                            {"k", {1, 2, 1, 8}},
                            {"v", {1, 2, 1, 8}},
                            {"pk", {1, 2, 99, 8}},
                            {"pv", {1, 2, 99, 8}}});
  add_node(*model.mutable_graph(), "Attention", {"q", "k", "v", "", "pk", "pv"}, "z");
  set_output(model, {1, 2, 1, 8});
  EXPECT_EQ(card_of(model).flops, 4 * 16 * 100);
}

TEST(OnnxCosts, OperatorsThatCameLaterHaveTheSizesOfTheirInputs) {
  for (const std::string kind : {"Gelu", "Mish", "GroupNormalization"}) {
    auto model = empty_model({{"x", {2, 8, 4, 4}}});
    model.mutable_opset_import(0)->set_version(21);
    auto& graph = *model.mutable_graph();
    add_parameter(graph, "scale", {8});
    add_parameter(graph, "bias", {8});
    std::vector<std::string> inputs{"x"};
    if (kind == "GroupNormalization") inputs.insert(inputs.end(), {"scale", "bias"});
    add_node(graph, kind, inputs, "h");
    add_node(graph, "Relu", {"h"}, "z");  // knows its size only if the one before does
    const auto card = card_of(model);
    EXPECT_FALSE(card.uncertain()) << kind;
    EXPECT_EQ(card.operators.at("ReLU").flops, 2 * 8 * 4 * 4) << kind;
  }
}

TEST(OnnxCosts, AnAttentionIsAsWideAsItsValuesForEachHeadOfTheQueries) {
  struct Case {
    std::vector<int64_t> query, value;
    int64_t of_queries, of_values, elements;
  };
  for (const auto& [query, value, of_queries, of_values, elements] :
       {Case{{2, 8, 6, 16}, {2, 8, 6, 24}, 0, 0, 2 * 8 * 6 * 24},
        Case{{2, 6, 32}, {2, 6, 32}, 0, 0, 2 * 6 * 32},
        Case{{2, 6, 32}, {2, 6, 8}, 8, 2, 2 * 6 * 32}}) {
    auto model = empty_model({{"q", query}, {"k", value}, {"v", value}});
    model.mutable_opset_import(0)->set_version(23);
    auto& graph = *model.mutable_graph();
    auto& node = add_node(graph, "Attention", {"q", "k", "v"}, "h");
    if (of_queries > 0) {
      attribute_of(node, "q_num_heads", onnx::AttributeProto::INT).set_i(of_queries);
      attribute_of(node, "kv_num_heads", onnx::AttributeProto::INT).set_i(of_values);
    }
    add_node(graph, "Relu", {"h"}, "z");
    const auto card = card_of(model);
    EXPECT_FALSE(card.uncertain());
    EXPECT_EQ(card.operators.at("ReLU").flops, elements);
  }
}

TEST(OnnxCosts, ThatNeedASizeWhichNobodyTellsAreUncertain) {
  auto model = empty_model({{"q", {2, 4, 128, 64}}, {"k", {}}});
  model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->clear_shape();
  add_node(*model.mutable_graph(), "Attention", {"q", "k", "k"}, "z");
  set_output(model, {2, 4, 128, 64});
  EXPECT_TRUE(card_of(model).uncertain());
}

struct Product {
  const char* equation;
  Inputs inputs;
  std::vector<int64_t> output;
  double flops;
};

onnx::ModelProto model_of(const Product& product) {
  auto model = empty_model(product.inputs);
  std::vector<std::string> names;
  for (const auto& [name, dims] : product.inputs) names.push_back(name);
  auto& node = add_node(*model.mutable_graph(), "Einsum", names, "z");
  attribute_of(node, "equation", onnx::AttributeProto::STRING).set_s(product.equation);
  set_output(model, product.output);
  return model;
}

TEST(OnnxCosts, AnEinsumIsWhatItsEquationSays) {
  const Product products[]{
      {"bij,bik->bjk", {{"x", {2, 100, 3}}, {"y", {2, 100, 5}}}, {2, 3, 5}, 2.0 * 2 * 100 * 3 * 5},
      {"bij, bjk", {{"x", {2, 7, 3}}, {"y", {2, 3, 5}}}, {7, 5}, 2.0 * 2 * 7 * 3 * 5},
      {"...ij,...jk->...ik",
       {{"x", {2, 6, 7, 3}}, {"y", {6, 3, 5}}},
       {2, 6, 7, 5},
       2.0 * 2 * 6 * 7 * 3 * 5},
      {"i,i,i->", {{"x", {9}}, {"y", {9}}, {"w", {9}}}, {}, 2.0 * 9},
      {"ij,jk->ik", {{"x", {4, 1}}, {"y", {6, 5}}}, {4, 5}, 2.0 * 4 * 6 * 5},
      {"ij->ji", {{"x", {200, 300}}}, {300, 200}, 0},
      {"ii->i", {{"x", {30, 30}}}, {30}, 0},
      {"ij->i", {{"x", {200, 300}}}, {200}, 200 * 300}};
  for (const auto& product : products) {
    const auto card = card_of(model_of(product));
    EXPECT_EQ(card.operators.at("MatMul").flops, product.flops) << product.equation;
    EXPECT_FALSE(card.uncertain()) << product.equation;
  }
}

TEST(OnnxCosts, AnEinsumWhoseEquationMeansNothingIsUncertain) {
  const Product products[]{{"", {{"x", {2, 3}}, {"y", {3, 5}}}, {2, 5}, 0},
                           {"ij->ij", {{"x", {2, 3}}, {"y", {3, 5}}}, {2, 5}, 0},
                           {"ijk,jk->ik", {{"x", {2, 3}}, {"y", {3, 5}}}, {2, 5}, 0},
                           {"ij,jk->ik", {{"x", {2, 4}}, {"y", {3, 5}}}, {2, 5}, 0},
                           {"i1,1k->ik", {{"x", {2, 3}}, {"y", {3, 5}}}, {2, 5}, 0},
                           {"i....,...k->ik", {{"x", {2, 3}}, {"y", {3, 5}}}, {2, 5}, 0},
                           {"ij,jk->il", {{"x", {2, 3}}, {"y", {3, 5}}}, {2, 5}, 0}};
  for (const auto& product : products) {
    const auto card = card_of(model_of(product));
    EXPECT_TRUE(card.uncertain()) << product.equation;
    EXPECT_EQ(card.unknown_operators.count("Einsum"), 1U) << product.equation;
  }
}

TEST(OnnxCosts, AWeightInAConstantIsAParameter) {
  for (const int64_t columns : {128, 2}) {
    auto model = empty_model({{"x", {8, 64}}});
    auto& graph = *model.mutable_graph();
    auto& attribute = *add_node(graph, "Constant", {}, "w").add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    attribute.mutable_t()->add_dims(64);
    attribute.mutable_t()->add_dims(columns);
    add_node(graph, "MatMul", {"x", "w"}, "z");
    const auto card = card_of(model);
    const bool is_weight = columns == 128;
    EXPECT_EQ(card.parameters, is_weight ? 64 * 128 : 0);
    EXPECT_EQ(card.parameter_bytes, is_weight ? 4 * 64 * 128 : 0);
    EXPECT_EQ(card.parameter_tensors, is_weight ? 1U : 0U);
    EXPECT_EQ(card.activation_bytes, 4 * 8 * columns);
    EXPECT_EQ(card.operators.at("MatMul").parameter_sum, is_weight ? 64 * 128 : 0);
    EXPECT_EQ(card.flops, 2.0 * 8 * 64 * columns);
    EXPECT_EQ(card.launches, 1U) << "a constant runs nothing";
    EXPECT_EQ(card.unknown_shapes, 0U);
  }
}

// A constant is added to x of the same sizes.
ModelCard with_constant(const std::vector<int64_t>& dims,
                        const std::function<void(onnx::NodeProto&)>& fill) {
  auto model = empty_model({{"x", dims}});
  auto& graph = *model.mutable_graph();
  fill(add_node(graph, "Constant", {}, "w"));
  add_node(graph, "Add", {"x", "w"}, "z");
  set_output(model, dims);
  return card_of(model);
}

TEST(OnnxCosts, AWeightInAConstantOfAListIsAParameter) {
  for (const int size : {2048, 1024, 1023})
    for (const bool is_whole : {false, true}) {
      const auto card = with_constant({size}, [&](onnx::NodeProto& node) {
        auto& list = is_whole ? attribute_of(node, "value_ints", onnx::AttributeProto::INTS)
                              : attribute_of(node, "value_floats", onnx::AttributeProto::FLOATS);
        for (int i = 0; i < size; ++i) is_whole ? list.add_ints(i) : list.add_floats(0.5F);
      });
      const bool is_weight = size >= 1024;
      EXPECT_EQ(card.parameters, is_weight ? size : 0);
      EXPECT_EQ(card.parameter_bytes, is_weight ? size * (is_whole ? 8 : 4) : 0);
      EXPECT_EQ(card.parameter_tensors, is_weight ? 1U : 0U);
      EXPECT_EQ(card.operators.at("AddV2").parameter_sum, is_weight ? size : 0);
      EXPECT_EQ(card.operators.count("Shape"), 0U);
      EXPECT_EQ(card.depth, 1U);
      EXPECT_EQ(card.launches, 1U);
      EXPECT_FALSE(card.uncertain());
    }
}

// An exporter's choice of where shapes stand changes nothing of what a training costs.
TEST(OnnxCosts, ShapesAreNoParametersWhereverTheyStand) {
  for (const bool in_constant : {false, true}) {
    auto model = empty_model({{"x", {4, 6}}});
    auto& graph = *model.mutable_graph();
    add_parameter(graph, "w", {8, 3});
    onnx::TensorProto shape;
    shape.set_name("shape");
    shape.set_data_type(onnx::TensorProto::INT64);
    shape.add_dims(2);
    for (const int64_t size : {3, 8}) shape.add_int64_data(size);
    if (in_constant)
      *attribute_of(add_node(graph, "Constant", {}, "shape"), "value", onnx::AttributeProto::TENSOR)
           .mutable_t() = shape;
    else
      *graph.add_initializer() = shape;
    add_node(graph, "Reshape", {"x", "shape"}, "y");
    add_node(graph, "MatMul", {"y", "w"}, "z");
    const auto card = card_of(model);
    EXPECT_EQ(card.parameters, 24);
    EXPECT_EQ(card.parameter_bytes, 4 * 24);
    EXPECT_EQ(card.parameter_tensors, 1U);
    EXPECT_EQ(card.launches, 2U);
    EXPECT_EQ(card.depth, 2U);
    EXPECT_EQ(card.flops, 2.0 * 3 * 8 * 3);
    EXPECT_EQ(card.activation_bytes, 4 * (24 + 9));
    EXPECT_FALSE(card.uncertain());
  }
}

TEST(OnnxCosts, OfASparseWeightInAConstantItsValuesCount) {
  for (const int64_t columns : {32, 2}) {
    const auto card = with_constant({64, columns}, [&](onnx::NodeProto& node) {
      fill_sparse(*attribute_of(node, "sparse_value", onnx::AttributeProto::SPARSE_TENSOR)
                       .mutable_sparse_tensor(),
                  100, {64, columns});
    });
    const bool is_weight = columns == 32;
    EXPECT_EQ(card.parameters, is_weight ? 100 : 0);
    EXPECT_EQ(card.parameter_bytes, is_weight ? 400 : 0);
    EXPECT_EQ(card.operators.at("AddV2").parameter_sum, is_weight ? 100 : 0);
    EXPECT_EQ(card.operators.count("Shape"), 0U);
    EXPECT_EQ(card.depth, 1U);
    EXPECT_FALSE(card.uncertain());
  }
}

TEST(OnnxCosts, OfASparseParameterItsValuesCount) {
  auto model = empty_model({{"x", {4, 64}}});
  auto& graph = *model.mutable_graph();
  add_sparse(graph, "w", 3, {64, 32});
  add_node(graph, "MatMul", {"x", "w"}, "z");
  set_output(model, {4, 32});
  const auto card = card_of(model);
  EXPECT_EQ(card.parameters, 3);
  EXPECT_EQ(card.parameter_bytes, 12);
  EXPECT_EQ(card.parameter_tensors, 1U);
  EXPECT_EQ(card.operators.at("MatMul").parameter_sum, 3);
  EXPECT_EQ(card.flops, 2 * 4 * 3);
}

// Each value is multiplied with as many as it meets, whichever operator and side it is on.
TEST(OnnxCosts, AProductWithASparseParameterTakesItsValuesOnly) {
  auto left = empty_model({{"x", {200, 5}}});
  add_sparse(*left.mutable_graph(), "w", 1500, {100, 200});
  add_node(*left.mutable_graph(), "MatMul", {"w", "x"}, "z");
  EXPECT_EQ(card_of(left).flops, 2 * 1500 * 5);

  auto batches = empty_model({{"x", {7, 4, 100}}});
  add_sparse(*batches.mutable_graph(), "w", 1500, {100, 200});
  add_node(*batches.mutable_graph(), "MatMul", {"x", "w"}, "z");
  EXPECT_EQ(card_of(batches).flops, 2 * 1500 * 7 * 4);

  auto turned = empty_model({{"x", {4, 100}}});
  add_sparse(*turned.mutable_graph(), "w", 1500, {200, 100});
  add_node(*turned.mutable_graph(), "Transpose", {"w"}, "w turned");
  add_node(*turned.mutable_graph(), "Gemm", {"x", "w turned"}, "z");
  const auto card = card_of(turned);
  EXPECT_EQ(card.flops, 2 * 1500 * 4);
  EXPECT_EQ(card.operators.at("MatMul").parameter_sum, 1500);
  EXPECT_EQ(card.launches, 1U);

  auto named = model_of({"ij,jk->ik", {{"x", {4, 100}}, {"w", {100, 200}}}, {4, 200}, 0});
  named.mutable_graph()->mutable_input()->RemoveLast();
  add_sparse(*named.mutable_graph(), "w", 1500, {100, 200});
  EXPECT_EQ(card_of(named).flops, 2 * 1500 * 4);
}

TEST(OnnxCosts, ARecurrentLayerHasTheStepsOfItsSequenceWhicheverDimensionThatIs) {
  for (const auto& [type, gates, of_step] :
       {std::tuple{"LSTM", 4, 11U}, {"GRU", 3, 11U}, {"RNN", 1, 3U}})
    for (const bool batch_first : {false, true}) {
      auto model = empty_model({{"x", batch_first ? std::vector<int64_t>{64, 10, 16}
                                                  : std::vector<int64_t>{10, 64, 16}}});
      model.mutable_opset_import(0)->set_version(14);
      auto& graph = *model.mutable_graph();
      add_parameter(graph, "w", {1, gates * 32, 16});
      add_parameter(graph, "r", {1, gates * 32, 32});
      auto& node = add_node(graph, type, {"x", "w", "r"}, "z");
      set_number(node, "hidden_size", 32);
      if (batch_first) set_number(node, "layout", 1);
      const auto card = card_of(model);
      EXPECT_EQ(card.launches, 1 + of_step * 10) << type << batch_first;
      EXPECT_EQ(card.flops, 2.0 * 64 * 10 * gates * 32 * (16 + 32)) << type << batch_first;
      EXPECT_EQ(card.operators.at("Recurrent").output_sum, 64 * 10 * 32) << type << batch_first;
      EXPECT_FALSE(card.uncertain());
    }
}

TEST(OnnxCosts, AConvolutionsBiasIsAddedWhicheverWayItGoes) {
  for (const char* type : {"Conv", "ConvTranspose"})
    for (const auto& inputs :
         {std::vector<std::string>{"x", "w", "b"}, {"x", "w"}, {"x", "w", ""}}) {
      auto model = empty_model({{"x", {1, 4, 8, 8}}});
      auto& graph = *model.mutable_graph();
      add_parameter(graph, "w", {4, 4, 3, 3});
      add_parameter(graph, "b", {4});
      add_node(graph, type, inputs, "z");
      const bool has_bias = inputs.back() == "b";
      const auto card = card_of(model);
      EXPECT_EQ(card.operators.count("BiasAdd"), has_bias ? 1U : 0U) << type;
      EXPECT_EQ(card.launches, 1U);
    }
}

TEST(OnnxCosts, SmallTypesAreSmall) {
  // FLOAT8E4M3FN, FLOAT8E5M2, FLOAT8E8M0: a byte. UINT4, INT4, FLOAT4E2M1: half of one.
  for (const auto& [type, bytes] :
       {std::pair{17, 513}, {19, 513}, {24, 513}, {21, 257}, {22, 257}, {23, 257}}) {
    auto model = perceptron();
    add_parameter(*model.mutable_graph(), "w3", {27, 19}).set_data_type(type);
    const auto card = card_of(model);
    EXPECT_EQ(card.parameters, 40 + 513) << type;
    EXPECT_EQ(card.parameter_bytes, 160 + bytes) << type;
  }
}

TEST(OnnxCosts, AParameterThatIsThereTwiceIsRefused) {
  auto model = perceptron();
  add_parameter(*model.mutable_graph(), "w1", {8, 4});
  const auto card = describe(model);
  ASSERT_FALSE(card);
  EXPECT_NE(card.error().message.find("'w1'"), std::string::npos) << card.error().message;
}

TEST(OnnxCosts, AWeightThatIsTransposedIsStillThatWeight) {
  auto model = perceptron();
  auto& graph = *model.mutable_graph();
  const auto plain = describe(model, 16);
  ASSERT_TRUE(plain) << plain.error().message;
  graph.mutable_initializer(0)->set_dims(0, 4);
  graph.mutable_initializer(0)->set_dims(1, 8);
  graph.mutable_node(0)->set_input(1, "w1 turned");
  auto nodes = graph.node();
  graph.clear_node();
  add_node(graph, "Identity", {"w1"}, "w1 again");
  add_node(graph, "Transpose", {"w1 again"}, "w1 turned");
  for (const auto& node : nodes) *graph.add_node() = node;
  const auto turned = describe(model, 16);
  ASSERT_TRUE(turned) << turned.error().message;
  EXPECT_EQ(card_json(*turned), card_json(*plain));
}

}  // namespace
}  // namespace tierpilot::sharing
