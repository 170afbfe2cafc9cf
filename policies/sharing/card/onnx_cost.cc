#include "policies/sharing/card/onnx_cost.h"

#include <algorithm>
#include <cmath>

#include "policies/sharing/card/onnx_einsum.h"

namespace tierpilot::sharing {
namespace {

using Flops = std::optional<double>;

// Nothing where its size is not known.
const Value* known(const Values& values, const std::string& name) {
  const auto* value = values.find(name);
  return value && value->elements ? value : nullptr;
}

const Value* input(const onnx::NodeProto& node, int index, const Values& values) {
  return index < node.input_size() ? known(values, node.input(index)) : nullptr;
}

// Of the first output; some operators make only a later one.
Flops output_elements(const onnx::NodeProto& node, const Values& values) {
  for (const auto& name : node.output()) {
    if (name.empty()) continue;
    const auto* value = known(values, name);
    return value ? value->elements : std::nullopt;
  }
  return 0;
}

Flops times(double factor, const Flops& elements) {
  return elements ? Flops(factor * *elements) : std::nullopt;
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
Flops convolution(const onnx::NodeProto& node, const Values& values) {
  const auto* weight = input(node, 1, values);
  if (!weight) return std::nullopt;
  if (weight->dims.empty() || weight->dims[0] == 0) return 0;
  return times(2 * *weight->elements / weight->dims[0], output_elements(node, values));
}

// Its weight is C x M/group x kernel: each input element gives all of one input channel.
Flops transposed_convolution(const onnx::NodeProto& node, const Values& values) {
  const auto* data = input(node, 0, values);
  const auto* weight = input(node, 1, values);
  if (!data || !weight) return std::nullopt;
  if (weight->dims.empty() || weight->dims[0] == 0) return 0;
  return 2 * *data->elements * *weight->elements / weight->dims[0];
}

Flops matrix_product(const onnx::NodeProto& node, const Values& values) {
  const auto* left = input(node, 0, values);
  if (!left) return std::nullopt;
  if (left->dims.empty()) return 0;
  const bool transposed = attribute(node, "transA", 0) != 0 && left->dims.size() == 2;
  return times(2 * (transposed ? left->dims.front() : left->dims.back()),
               output_elements(node, values));
}

// Inputs are sequence x batch x size or batch x sequence x size, weights directions x gates x size,
// and recurrent ones.
Flops recurrent(const onnx::NodeProto& node, const Values& values) {
  const auto* data = input(node, 0, values);
  const auto* weight = input(node, 1, values);
  const auto* again = input(node, 2, values);
  if (!data || !weight || !again) return std::nullopt;
  if (data->dims.size() < 2) return 0;
  return 2 * data->dims[0] * data->dims[1] * (*weight->elements + *again->elements);
}

// Queries times keys, and the weights times values. Keys are batch x heads x keys x size, or
// without heads; so are those of the past, which are input 4.
Flops attention(const onnx::NodeProto& node, const Values& values) {
  double keys = 0;
  for (const int index : {1, 4}) {
    if (index >= node.input_size() || node.input(index).empty()) continue;
    const auto* value = input(node, index, values);
    if (!value || value->dims.size() < 2) return std::nullopt;
    keys += value->dims[value->dims.size() - 2];
  }
  return times(4 * keys, output_elements(node, values));
}

Flops einsum(const onnx::NodeProto& node, const Values& values) {
  std::vector<const Value*> operands;
  for (int i = 0; i < node.input_size(); ++i) {
    operands.push_back(input(node, i, values));
    if (!operands.back()) return std::nullopt;
  }
  for (const auto& each : node.attribute())
    if (each.name() == "equation") return einsum_flops(each.s(), operands);
  return std::nullopt;
}

// Of sparse operands only the values that are kept are multiplied.
Flops product_of(const onnx::NodeProto& node, const Values& values) {
  const bool is_einsum = node.op_type() == "Einsum";
  const int operands = is_einsum ? node.input_size() : std::min(node.input_size(), 2);
  double density = 1;
  for (int i = 0; i < operands; ++i)
    if (const auto* operand = input(node, i, values)) density *= operand->density;
  const auto dense = is_einsum ? einsum(node, values) : matrix_product(node, values);
  return dense && density < 1 ? Flops(std::round(*dense * density)) : dense;
}

}  // namespace

std::optional<double> forward_flops(const onnx::NodeProto& node, std::string_view kind,
                                    const Values& values) {
  if (kind == "Conv2D" || kind == "DepthwiseConv2D") return convolution(node, values);
  if (kind == "Conv2DTranspose") return transposed_convolution(node, values);
  if (kind == "Attention") return attention(node, values);
  if (kind == "MatMul") return product_of(node, values);
  if (kind == "Recurrent") return recurrent(node, values);
  if (kind == "Shape" || kind == "Transpose" || kind == "Gather" || kind == "Concat") return 0;
  if (kind == "Reduce" || node.op_type().starts_with("Global")) {
    const auto* data = input(node, 0, values);
    return data ? data->elements : std::nullopt;
  }
  if (kind == "MaxPool" || kind == "AvgPool")
    return times(window(node), output_elements(node, values));
  // Mean, variance, difference, scale and shift; or exponent, sum and quotient.
  if (kind == "BatchNorm" || kind == "LayerNorm" || kind == "Softmax")
    return times(5, output_elements(node, values));
  return output_elements(node, values);
}

// Its weights have a part for each direction; by its layout the batch may come first.
uint64_t recurrent_launches(const onnx::NodeProto& node, const Values& values) {
  const auto* data = input(node, 0, values);
  const auto* weight = input(node, 1, values);
  const size_t sequence = attribute(node, "layout", 0) == 1 ? 1 : 0;
  if (!data || !weight || data->dims.size() <= sequence || weight->dims.empty()) return 1;
  const double of_step = node.op_type() == "RNN" ? 3 : 11;
  constexpr double kMost = 1e15;  // beyond what any file may ask for, and all of a file add up
  return static_cast<uint64_t>(
      std::min(kMost, (1 + of_step * data->dims[sequence]) * weight->dims[0]));
}

}  // namespace tierpilot::sharing
