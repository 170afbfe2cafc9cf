#include "policies/sharing/card/onnx_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/card/plain_name.h"

namespace tierpilot::sharing {
namespace {

constexpr int kMaxDimensions = 64;
constexpr double kMaxElements = 1e15;
constexpr double kLeastWeight = 1024;  // elements: a smaller constant is a size, an axis, a scale

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
    // Later than the library's own list: four kinds of eight bits and their scale, and of four
    // bits.
    case 17:
    case 18:
    case 19:
    case 20:
    case 24:
      return 1;
    case 21:
    case 22:
    case 23:
      return 0.5;
    default:
      return 4;
  }
}

bool is_whole(int type) {
  using Tensor = onnx::TensorProto;
  return type == Tensor::INT64 || type == Tensor::INT32 || type == Tensor::BOOL;
}

template <class Dims>
Result<Value> sized(const std::string& name, const std::string& value_name, const Dims& dims) {
  if (dims.size() > kMaxDimensions)
    return wrong_model(name, fmt::format("value '{}' has {} dimensions, and {} are the most",
                                         plain_name(value_name), dims.size(), kMaxDimensions));
  Value value{.elements = 1};
  for (const int64_t dim : dims) {
    if (dim < 0)
      return wrong_model(
          name, fmt::format("value '{}' has a dimension of {}", plain_name(value_name), dim));
    value.dims.push_back(static_cast<double>(dim));
    *value.elements *= static_cast<double>(dim);
    if (*value.elements > kMaxElements)
      return wrong_model(name, fmt::format("value '{}' has more than {:.0e} elements",
                                           plain_name(value_name), kMaxElements));
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

Result<Value> read_parameter(const onnx::TensorProto& tensor, const std::string& name,
                             const std::string& value_name) {
  auto value = sized(name, value_name, tensor.dims());
  if (!value) return value;
  value->element_bytes = bytes_of(tensor.data_type());
  value->is_parameter = true;
  value->is_size = is_whole(tensor.data_type()) && *value->elements < kLeastWeight;
  return value;
}

Result<Value> read_sparse(const onnx::SparseTensorProto& tensor, const std::string& name,
                          const std::string& value_name) {
  auto value = read_parameter(tensor.values(), name, value_name);
  if (!value) return value;
  auto whole = sized(name, value_name, tensor.dims());
  if (!whole) return whole;
  value->dims = std::move(whole->dims);
  if (*whole->elements > 0) value->density = std::min(1.0, *value->elements / *whole->elements);
  return value;
}

template <class Dims>
bool is_weight(const Dims& dims) {
  double elements = 1;
  for (const auto dim : dims) elements *= static_cast<double>(dim);
  return elements >= kLeastWeight;
}

std::optional<Value> weight_of(int elements, double element_bytes) {
  const double size = elements;
  if (size < kLeastWeight) return std::nullopt;
  return Value{
      .elements = size, .dims = {size}, .element_bytes = element_bytes, .is_parameter = true};
}

// Some exporters keep weights in constants, not in initializers. Nothing: it is none.
Result<std::optional<Value>> weight_in(const onnx::NodeProto& node, const std::string& name) {
  if (node.op_type() != "Constant" || node.output_size() != 1) return std::nullopt;
  if (!node.domain().empty() && node.domain() != "ai.onnx") return std::nullopt;
  for (const auto& attribute : node.attribute()) {
    const auto& what = attribute.name();
    if (what == "value" && attribute.has_t() && is_weight(attribute.t().dims()))
      return read_parameter(attribute.t(), name, node.output(0));
    const auto& sparse = attribute.sparse_tensor();
    if (what == "sparse_value" && is_weight(sparse.dims()))
      return read_sparse(sparse, name, node.output(0));
    if (what == "value_floats")
      return weight_of(attribute.floats_size(), bytes_of(onnx::TensorProto::FLOAT));
    if (what == "value_ints")
      return weight_of(attribute.ints_size(), bytes_of(onnx::TensorProto::INT64));
    if (what == "value_strings")
      return weight_of(attribute.strings_size(), bytes_of(onnx::TensorProto::STRING));
  }
  return std::nullopt;
}

Status put_parameters(const onnx::GraphProto& graph, const std::string& name, Values& values) {
  const auto put = [&](const std::string& value_name, Result<Value> value) -> Status {
    if (!value) return tl::unexpected(value.error());
    values.put(value_name, std::move(*value));
    return {};
  };
  Status status;
  for (const auto& tensor : graph.initializer())
    if (status) status = put(tensor.name(), read_parameter(tensor, name, tensor.name()));
  for (const auto& tensor : graph.sparse_initializer())
    if (status)
      status = put(tensor.values().name(), read_sparse(tensor, name, tensor.values().name()));
  for (const auto& node : graph.node()) {
    if (!status) return status;
    auto weight = weight_in(node, name);
    if (!weight) return tl::unexpected(weight.error());
    if (*weight) values.put(node.output(0), std::move(**weight));
  }
  return status;
}

}  // namespace

Status check_bytes(const onnx::TensorProto& tensor, const std::string& name) {
  if (tensor.raw_data().empty()) return {};  // they are elsewhere, or left out
  double elements = 1;
  for (const auto dim : tensor.dims()) elements *= static_cast<double>(dim);
  const double bytes = std::ceil(elements * bytes_of(tensor.data_type()));
  if (static_cast<double>(tensor.raw_data().size()) == bytes) return {};
  return wrong_model(name, fmt::format("value '{}' has {} bytes, and its dimensions take {:.0f}: "
                                       "the file is broken, export it again",
                                       plain_name(tensor.name()), tensor.raw_data().size(), bytes));
}

double Value::bytes() const {
  return std::ceil(elements.value_or(0) * element_bytes);
}

Result<Values> values_of(const onnx::GraphProto& graph, const std::string& name,
                         const Values* outer) {
  Values values(outer);
  for (const auto* infos : {&graph.input(), &graph.value_info(), &graph.output()})
    for (const auto& info : *infos) {
      auto value = read_value(info, name);
      if (!value) return tl::unexpected(value.error());
      values.put(info.name(), std::move(*value));
    }
  if (auto status = put_parameters(graph, name, values); !status)
    return tl::unexpected(status.error());
  return values;
}

}  // namespace tierpilot::sharing
