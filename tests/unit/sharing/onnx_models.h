// Small ONNX models, made as tests need them.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/sharing/card/onnx_model.h"

namespace tierpilot::sharing {

inline onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& type,
                                 const std::vector<std::string>& inputs,
                                 const std::string& output) {
  auto* node = graph.add_node();
  node->set_op_type(type);
  for (const auto& input : inputs) node->add_input(input);
  node->add_output(output);
  return *node;
}

inline onnx::TensorProto& add_parameter(onnx::GraphProto& graph, const std::string& name,
                                        const std::vector<int64_t>& dims) {
  auto* tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const auto dim : dims) tensor->add_dims(dim);
  return *tensor;
}

// N x 8 -> Gemm(8 x 4) -> Relu -> Gemm(4 x 2)
inline onnx::ModelProto perceptron() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto* opset = model.add_opset_import();
  opset->set_version(13);
  auto& graph = *model.mutable_graph();
  graph.set_name("perceptron");
  add_parameter(graph, "w1", {8, 4});
  add_parameter(graph, "w2", {4, 2});
  add_node(graph, "Gemm", {"x", "w1"}, "h");
  add_node(graph, "Relu", {"h"}, "a");
  add_node(graph, "Gemm", {"a", "w2"}, "y");
  auto* input = graph.add_input();
  input->set_name("x");
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("N");
  type->mutable_shape()->add_dim()->set_dim_value(8);
  graph.add_output()->set_name("y");
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  return model;
}

inline Result<ModelCard> describe(const onnx::ModelProto& model,
                                  std::optional<uint32_t> batch = {}) {
  return describe_onnx(model.SerializeAsString(), "m.onnx", batch);
}

// A value of an input or an output, with all its dimensions.
inline void set_value(onnx::ValueInfoProto& info, const std::string& name,
                      const std::vector<int64_t>& dims, int type = onnx::TensorProto::FLOAT) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (const auto dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
}

// No operators, an input for each of `inputs`, and nothing told of the output z.
inline onnx::ModelProto empty_model(
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& inputs) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  graph.set_name("g");
  for (const auto& [name, dims] : inputs) set_value(*graph.add_input(), name, dims);
  graph.add_output()->set_name("z");
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  return model;
}

inline onnx::GraphProto& add_body(onnx::NodeProto& node, const std::string& attribute) {
  auto& added = *node.add_attribute();
  added.set_name(attribute);
  added.set_type(onnx::AttributeProto::GRAPH);
  added.mutable_g()->set_name(attribute);
  return *added.mutable_g();
}

}  // namespace tierpilot::sharing
