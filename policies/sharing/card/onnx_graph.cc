#include "policies/sharing/card/onnx_graph.h"

#include <fmt/format.h>

#include <unordered_set>

namespace tierpilot::sharing {
namespace {

constexpr int kMaxOperators = 1'000'000;
constexpr int kMaxDimensions = 64;
constexpr double kMaxElements = 1e15;
constexpr int kMaxNesting = 16;  // of bodies of If, Loop and Scan

// Elements are at most eight bytes, apart from complex128 and strings.
double bytes_of(int type) {
  using Tensor = onnx::TensorProto;
  switch (type) {
    case Tensor::BOOL:
    case Tensor::INT8:
    case Tensor::UINT8:
      return 1;
    case Tensor::FLOAT16:
    case Tensor::BFLOAT16:
    case Tensor::INT16:
    case Tensor::UINT16:
      return 2;
    case Tensor::DOUBLE:
    case Tensor::INT64:
    case Tensor::UINT64:
    case Tensor::COMPLEX64:
      return 8;
    case Tensor::COMPLEX128:
      return 16;
    default:
      return 4;
  }
}

tl::unexpected<Error> wrong(const std::string& name, const std::string& what) {
  return fail(ErrorCode::kInvalid, fmt::format("model '{}': {}", name, what));
}

template <class Dims>
Result<Value> sized(const std::string& name, const std::string& value_name, const Dims& dims) {
  if (dims.size() > kMaxDimensions)
    return wrong(name, fmt::format("value '{}' has {} dimensions", value_name, dims.size()));
  Value value{.elements = 1};
  for (const int64_t dim : dims) {
    if (dim < 0)
      return wrong(name, fmt::format("value '{}' has a dimension of {}", value_name, dim));
    value.dims.push_back(static_cast<double>(dim));
    *value.elements *= static_cast<double>(dim);
    if (*value.elements > kMaxElements)
      return wrong(
          name, fmt::format("value '{}' has more than {:.0e} elements", value_name, kMaxElements));
  }
  return value;
}

Result<Value> read_value(const onnx::ValueInfoProto& info, const std::string& name) {
  const auto& tensor = info.type().tensor_type();
  Value value;
  if (tensor.has_shape()) {
    std::vector<int64_t> dims;
    bool known = true;
    for (const auto& dim : tensor.shape().dim()) {
      known = known && dim.has_dim_value();
      dims.push_back(dim.dim_value());
    }
    if (known) {
      auto all = sized(name, info.name(), dims);
      if (!all) return all;
      value = std::move(*all);
    }
  }
  value.element_bytes = bytes_of(tensor.elem_type());
  return value;
}

// As people find it in the file: many exporters name values only.
std::string label(const onnx::NodeProto& node) {
  if (!node.name().empty() || node.output_size() == 0)
    return fmt::format("operator '{}' ({})", node.name(), node.op_type());
  return fmt::format("the {} that makes '{}'", node.op_type(), node.output(0));
}

// Shape inference divides by them, or counts with them.
Status check_attributes(const onnx::NodeProto& node, const std::string& name) {
  static const std::unordered_set<std::string> kAboveZero{"strides", "dilations", "kernel_shape",
                                                          "group",   "blocksize", "num_outputs"};
  if (!node.domain().empty() && node.domain() != "ai.onnx") return {};
  for (const auto& attribute : node.attribute()) {
    if (!kAboveZero.contains(attribute.name())) continue;
    std::vector<int64_t> values(attribute.ints().begin(), attribute.ints().end());
    if (attribute.type() != onnx::AttributeProto::INTS && values.empty())
      values.push_back(attribute.i());
    for (const auto value : values)
      if (value < 1)
        return wrong(name, fmt::format("{}: its '{}' has {}, and has to be 1 or more", label(node),
                                       attribute.name(), value));
  }
  if (node.op_type() == "Split" && node.output_size() == 0)
    return wrong(name, fmt::format("{}: it splits into nothing", label(node)));
  return {};
}

// Operators come after those whose values they take, as ONNX demands: so a circle has a first
// operator that takes what comes later.
Status check_order(const onnx::GraphProto& graph, const std::string& name,
                   std::unordered_set<std::string> made, int nesting) {
  if (nesting > kMaxNesting)
    return wrong(name, fmt::format("bodies of operators are nested {} deep", nesting));
  for (const auto& input : graph.input()) made.insert(input.name());
  for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) made.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    for (const auto& input : node.input())
      if (!input.empty() && !made.contains(input))
        return wrong(name,
                     fmt::format("{} takes '{}', which none before it makes: "
                                 "operators wait for each other in a circle, or one is missing",
                                 label(node), input));
    if (auto status = check_attributes(node, name); !status) return status;
    for (const auto& attribute : node.attribute())
      if (attribute.has_g())
        if (auto status = check_order(attribute.g(), name, made, nesting + 1); !status)
          return status;
    for (const auto& output : node.output())
      if (!output.empty() && !made.insert(output).second)
        return wrong(name, fmt::format("value '{}' is made twice", output));
  }
  return {};
}

}  // namespace

Status check_graph(const onnx::GraphProto& graph, const std::string& name) {
  if (graph.node_size() == 0) return wrong(name, "it has no operators; is it an ONNX file?");
  if (graph.node_size() > kMaxOperators)
    return wrong(name, fmt::format("it has more than {} operators", kMaxOperators));
  return check_order(graph, name, {}, 0);
}

Result<uint32_t> batch_of(const onnx::GraphProto& graph, std::optional<uint32_t> wanted,
                          const std::string& name) {
  std::unordered_set<std::string> parameters;
  for (const auto& tensor : graph.initializer()) parameters.insert(tensor.name());
  for (const auto& input : graph.input()) {
    const auto& shape = input.type().tensor_type().shape();
    if (parameters.contains(input.name()) || shape.dim_size() == 0) continue;
    const int64_t fixed = shape.dim(0).dim_value();
    if (fixed <= 0) break;
    if (fixed > UINT32_MAX)
      return wrong(name, fmt::format("input '{}' has a batch of {}", input.name(), fixed));
    if (wanted && *wanted != fixed)
      return wrong(name, fmt::format("input '{}' has a batch of {}, and so no other: leave out "
                                     "--batch, or export it with an open first dimension",
                                     input.name(), fixed));
    return static_cast<uint32_t>(fixed);
  }
  return wanted.value_or(1);
}

std::vector<std::string> close_dimensions(onnx::GraphProto& graph, uint32_t batch) {
  std::vector<std::string> guessed;
  for (auto& input : *graph.mutable_input()) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) continue;
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (shape.dim(i).has_dim_value() && shape.dim(i).dim_value() > 0) continue;
      const uint32_t size = i == 0 ? batch : 1;
      guessed.push_back(fmt::format("{}[{}] = {}", input.name(), i, size));
      shape.mutable_dim(i)->set_dim_value(size);
    }
  }
  return guessed;
}

Result<Values> values_of(const onnx::GraphProto& graph, const std::string& name) {
  Values values;
  for (const auto* infos : {&graph.input(), &graph.value_info(), &graph.output()})
    for (const auto& info : *infos) {
      auto value = read_value(info, name);
      if (!value) return tl::unexpected(value.error());
      values[info.name()] = std::move(*value);
    }
  for (const auto& tensor : graph.initializer()) {
    auto value = sized(name, tensor.name(), tensor.dims());
    if (!value) return tl::unexpected(value.error());
    value->element_bytes = bytes_of(tensor.data_type());
    value->is_parameter = true;
    values[tensor.name()] = std::move(*value);
  }
  return values;
}

}  // namespace tierpilot::sharing
