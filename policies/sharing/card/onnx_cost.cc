#include "policies/sharing/card/onnx_cost.h"

#include <algorithm>

namespace tierpilot::sharing {
namespace {

const Value* find(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() || !found->second.elements ? nullptr : &found->second;
}

const Value* input(const onnx::NodeProto& node, int index, const Values& values) {
  return index < node.input_size() ? find(values, node.input(index)) : nullptr;
}

double output_elements(const onnx::NodeProto& node, const Values& values) {
  const auto* value = node.output_size() > 0 ? find(values, node.output(0)) : nullptr;
  return value ? *value->elements : 0;
}

double attribute(const onnx::NodeProto& node, const char* name, double otherwise) {
  for (const auto& each : node.attribute())
    if (each.name() == name) return static_cast<double>(each.i());
  return otherwise;
}

double product(const std::vector<int64_t>& values) {
  double product = 1;
  for (const auto value : values) product *= static_cast<double>(std::max<int64_t>(value, 1));
  return product;
}

double window(const onnx::NodeProto& node) {
  for (const auto& each : node.attribute())
    if (each.name() == "kernel_shape") return product({each.ints().begin(), each.ints().end()});
  return 1;
}

// A weight of M x C/group x kernel: each output element takes all of one output channel.
double convolution(const onnx::NodeProto& node, const Values& values) {
  const auto* weight = input(node, 1, values);
  if (!weight || weight->dims.empty() || weight->dims[0] == 0) return 0;
  return 2 * output_elements(node, values) * *weight->elements / weight->dims[0];
}

// Its weight is C x M/group x kernel: each input element gives all of one input channel.
double transposed_convolution(const onnx::NodeProto& node, const Values& values) {
  const auto* data = input(node, 0, values);
  const auto* weight = input(node, 1, values);
  if (!data || !weight || weight->dims.empty() || weight->dims[0] == 0) return 0;
  return 2 * *data->elements * *weight->elements / weight->dims[0];
}

double matrix_product(const onnx::NodeProto& node, const Values& values) {
  const auto* left = input(node, 0, values);
  if (!left || left->dims.empty()) return 0;
  const bool transposed = attribute(node, "transA", 0) != 0 && left->dims.size() == 2;
  return 2 * output_elements(node, values) * (transposed ? left->dims.front() : left->dims.back());
}

// Inputs are sequence x batch x size, weights directions x gates x size, and recurrent ones.
double recurrent(const onnx::NodeProto& node, const Values& values) {
  const auto* data = input(node, 0, values);
  const auto* weight = input(node, 1, values);
  const auto* again = input(node, 2, values);
  if (!data || !weight || !again || data->dims.size() < 2) return 0;
  return 2 * data->dims[0] * data->dims[1] * (*weight->elements + *again->elements);
}

}  // namespace

double forward_flops(const onnx::NodeProto& node, std::string_view kind, const Values& values) {
  if (kind == "Conv2D" || kind == "DepthwiseConv2D") return convolution(node, values);
  if (kind == "Conv2DTranspose") return transposed_convolution(node, values);
  if (kind == "MatMul") return matrix_product(node, values);
  if (kind == "Recurrent") return recurrent(node, values);
  if (kind == "Shape" || kind == "Transpose" || kind == "Gather" || kind == "Concat") return 0;
  if (kind == "Reduce" || node.op_type().starts_with("Global")) {
    const auto* data = input(node, 0, values);
    return data ? *data->elements : 0;
  }
  if (kind == "MaxPool" || kind == "AvgPool") return output_elements(node, values) * window(node);
  // Mean, variance, difference, scale and shift; or exponent, sum and quotient.
  if (kind == "BatchNorm" || kind == "LayerNorm" || kind == "Softmax")
    return 5 * output_elements(node, values);
  return output_elements(node, values);
}

}  // namespace tierpilot::sharing
