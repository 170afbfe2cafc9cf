#include "policies/sharing/card/onnx_overflow.h"

#include <onnx/defs/tensor_proto_util.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

namespace tierpilot::sharing {
namespace {

constexpr double kMostElements = 1e15;  // as of a value that is described
constexpr double kMostWhole = 4e18;     // 64 bits hold twice as much
constexpr int kMostNumbers = 256;       // of sizes, pads, repeats, scales
using Numbers = std::vector<double>;

// They compute sizes of what they are told as values, or as attributes.
bool computes(const std::string& kind) {
  static const std::unordered_set<std::string> kKinds{
      "AveragePool",  "Col2Im", "Conv",         "ConvInteger", "ConvTranspose", "DeformConv",
      "DepthToSpace", "LpPool", "MaxPool",      "MaxUnpool",   "Pad",           "QLinearConv",
      "Resize",       "STFT",   "SpaceToDepth", "Tile",        "Upsample"};
  return kKinds.contains(kind);
}

template <class Values>
void append(Numbers& numbers, const Values& values) {
  for (const auto value : values) numbers.push_back(static_cast<double>(value));
}

Numbers numbers_of(const onnx::TensorProto& tensor) {
  Numbers numbers;
  double elements = 1;
  for (const auto dim : tensor.dims()) elements *= static_cast<double>(dim);
  if (!(elements <= kMostNumbers)) return numbers;
  switch (tensor.data_type()) {
    case onnx::TensorProto::INT64:
      append(numbers, onnx::ParseData<int64_t>(&tensor));
      break;
    case onnx::TensorProto::INT32:
      append(numbers, onnx::ParseData<int32_t>(&tensor));
      break;
    case onnx::TensorProto::FLOAT:
      append(numbers, onnx::ParseData<float>(&tensor));
      break;
    case onnx::TensorProto::DOUBLE:
      append(numbers, onnx::ParseData<double>(&tensor));
      break;
    default:
      break;
  }
  return numbers;
}

Numbers numbers_of(const onnx::TensorShapeProto& sizes) {
  Numbers numbers;
  for (const auto& dim : sizes.dim())
    if (dim.has_dim_value()) numbers.push_back(static_cast<double>(dim.dim_value()));
  return numbers;
}

Numbers told(const onnx::InferenceContext& context, size_t input) {
  if (input >= context.getNumInputs()) return {};
  if (const auto* tensor = context.getInputData(input)) return numbers_of(*tensor);
  const auto* sizes = context.getSymbolicInput(input);
  return sizes ? numbers_of(*sizes) : Numbers();
}

// Nothing counts as one: 0 would hide what other dimensions come to before it.
double factor(double number) {
  return std::isfinite(number) ? std::max(1.0, std::abs(number)) : HUGE_VAL;
}

double product(const Numbers& numbers) {
  double product = 1;
  for (const double number : numbers) product *= factor(number);
  return product;
}

double largest(const Numbers& numbers) {
  double most = 1;
  for (const double number : numbers) most = std::max(most, factor(number));
  return most;
}

Numbers sizes_of(const onnx::TypeProto* type) {
  return type && type->has_tensor_type() ? numbers_of(type->tensor_type().shape()) : Numbers();
}

double largest_attribute(const onnx::InferenceContext& context) {
  double most = 1;
  for (const char* name : {"blocksize", "dilations", "frame_step", "kernel_shape", "output_padding",
                           "output_shape", "paddings", "pads", "repeats", "scales", "strides"}) {
    const auto* attribute = context.getAttribute(name);
    if (!attribute) continue;
    Numbers numbers{static_cast<double>(attribute->i())};
    append(numbers, attribute->ints());
    append(numbers, attribute->floats());
    most = std::max(most, largest(numbers));
  }
  return most;
}

bool is_range_too_long(const onnx::InferenceContext& context) {
  const auto start = told(context, 0), limit = told(context, 1), delta = told(context, 2);
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1) return false;
  const double span = std::abs(start[0]) + std::abs(limit[0]);
  return !(span <= kMostWhole && span <= kMostWhole * std::abs(delta[0]));
}

}  // namespace

bool may_overflow(const std::string& kind, const onnx::InferenceContext& context) {
  double sizes = 0;  // as of what is put together
  for (size_t i = 0; i < context.getNumInputs(); ++i) {
    const auto dims = sizes_of(context.getInputType(i));
    if (product(dims) > kMostElements) return true;
    sizes += largest(dims);
  }
  if (sizes > kMostWhole) return true;
  if (kind == "Range") return is_range_too_long(context);
  if (kind == "Reshape") return !(product(told(context, 1)) <= kMostWhole);
  if (!computes(kind)) return false;
  double values = 1;
  for (size_t i = 1; i < context.getNumInputs(); ++i)
    values = std::max(values, largest(told(context, i)));
  const double attributes = largest_attribute(context);
  // A window is its size times its dilation, a block is squared.
  return !(sizes * values * attributes * attributes <= kMostWhole);
}

bool may_overflow(const std::string& kind, onnx::DataPropagationContext& context) {
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (product(sizes_of(context.getInputType(i))) > kMostElements) return true;
  if (kind != "Add" && kind != "Sub" && kind != "Mul") return false;
  double most = 2;  // a sum is twice the larger one at most
  for (size_t i = 0; i < context.getNumInputs(); ++i)
    if (const auto* values = context.getInputData(i)) most *= largest(numbers_of(*values));
  return most > kMostWhole;
}

}  // namespace tierpilot::sharing
