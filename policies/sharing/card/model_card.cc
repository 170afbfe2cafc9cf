#include "policies/sharing/card/model_card.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tierpilot::sharing {
namespace {

struct Kind {
  std::string_view onnx, kind;
};

// Sorted by name. Kinds of the published features have TensorFlow's names.
constexpr Kind kKinds[]{{"Abs", "Elementwise"},
                        {"Add", "AddV2"},
                        {"ArgMax", "Reduce"},
                        {"Attention", "Attention"},
                        {"AveragePool", "AvgPool"},
                        {"BatchNormalization", "BatchNorm"},
                        {"Cast", "Elementwise"},
                        {"Clip", "ReLU"},
                        {"Concat", "Concat"},
                        {"Constant", "Shape"},
                        {"ConstantOfShape", "Shape"},
                        {"Conv", "Conv2D"},
                        {"ConvTranspose", "Conv2DTranspose"},
                        {"Cos", "Elementwise"},
                        {"DepthToSpace", "Shape"},
                        {"Div", "Mul"},
                        {"Dropout", "Dropout"},
                        {"Einsum", "MatMul"},
                        {"Elu", "Activation"},
                        {"Equal", "Elementwise"},
                        {"Erf", "Elementwise"},
                        {"Exp", "Elementwise"},
                        {"Expand", "Shape"},
                        {"Flatten", "Shape"},
                        {"GRU", "Recurrent"},
                        {"Gather", "Gather"},
                        {"GatherElements", "Gather"},
                        {"GatherND", "Gather"},
                        {"Gelu", "Activation"},
                        {"Gemm", "MatMul"},
                        {"GlobalAveragePool", "AvgPool"},
                        {"GlobalMaxPool", "MaxPool"},
                        {"Greater", "Elementwise"},
                        {"HardSigmoid", "Activation"},
                        {"HardSwish", "Activation"},
                        {"Identity", "Shape"},
                        {"InstanceNormalization", "LayerNorm"},
                        {"LRN", "LayerNorm"},
                        {"LSTM", "Recurrent"},
                        {"LayerNormalization", "LayerNorm"},
                        {"LeakyRelu", "Activation"},
                        {"Less", "Elementwise"},
                        {"Log", "Elementwise"},
                        {"LogSoftmax", "Softmax"},
                        {"MatMul", "MatMul"},
                        {"Max", "Elementwise"},
                        {"MaxPool", "MaxPool"},
                        {"Min", "Elementwise"},
                        {"Mish", "Activation"},
                        {"Mul", "Mul"},
                        {"Neg", "Elementwise"},
                        {"Not", "Elementwise"},
                        {"OneHot", "Gather"},
                        {"PRelu", "Activation"},
                        {"Pad", "Shape"},
                        {"Pow", "Elementwise"},
                        {"RNN", "Recurrent"},
                        {"Range", "Shape"},
                        {"ReduceMax", "Reduce"},
                        {"ReduceMean", "Reduce"},
                        {"ReduceMin", "Reduce"},
                        {"ReduceProd", "Reduce"},
                        {"ReduceSum", "Reduce"},
                        {"Relu", "ReLU"},
                        {"Reshape", "Shape"},
                        {"Resize", "Resize"},
                        {"ScatterND", "Gather"},
                        {"Selu", "Activation"},
                        {"Shape", "Shape"},
                        {"Sigmoid", "Activation"},
                        {"Sin", "Elementwise"},
                        {"Slice", "Shape"},
                        {"Softmax", "Softmax"},
                        {"Softplus", "Activation"},
                        {"Softsign", "Activation"},
                        {"Split", "Shape"},
                        {"Sqrt", "Elementwise"},
                        {"Squeeze", "Shape"},
                        {"Sub", "AddV2"},
                        {"Sum", "AddV2"},
                        {"Tanh", "Activation"},
                        {"Tile", "Shape"},
                        {"TopK", "Reduce"},
                        {"Transpose", "Transpose"},
                        {"Unsqueeze", "Shape"},
                        {"Upsample", "Resize"},
                        {"Where", "Elementwise"}};

// PyTorch's reader has the same.
constexpr std::string_view kAllKinds[]{
    "Activation", "AddV2",       "Attention", "AvgPool",         "BatchNorm",
    "BiasAdd",    "Concat",      "Conv2D",    "Conv2DTranspose", "DepthwiseConv2D",
    "Dropout",    "Elementwise", "Gather",    "LayerNorm",       "MatMul",
    "MaxPool",    "Mul",         "ReLU",      "Recurrent",       "Reduce",
    "Resize",     "Shape",       "Softmax",   "Transpose",       "Unknown"};

nlohmann::ordered_json job_json(const JobCard& job) {
  nlohmann::ordered_json value = nlohmann::ordered_json::object();
  if (job.iterations > 0) value["iterations"] = job.iterations;
  if (!job.optimizer.empty()) value["optimizer"] = job.optimizer;
  if (job.samples_per_s) value["samples_per_s"] = *job.samples_per_s;
  if (job.load_s) value["load_s"] = *job.load_s;
  if (job.loads_ahead) value["loads_ahead"] = true;
  if (job.threads > 0) value["threads"] = job.threads;
  return value;
}

}  // namespace

std::span<const std::string_view> operator_kinds() {
  return kAllKinds;
}

std::string_view operator_kind(std::string_view onnx_operator) {
  const auto* found =
      std::lower_bound(std::begin(kKinds), std::end(kKinds), onnx_operator,
                       [](const Kind& kind, std::string_view name) { return kind.onnx < name; });
  return found != std::end(kKinds) && found->onnx == onnx_operator ? found->kind : "";
}

nlohmann::ordered_json card_json(const ModelCard& card) {
  nlohmann::ordered_json operators = nlohmann::ordered_json::object();
  for (const auto& [kind, use] : card.operators)
    operators[kind] = {{"count", use.count},
                       {"largest_input", use.largest_input},
                       {"input_sum", use.input_sum},
                       {"output_sum", use.output_sum},
                       {"parameter_sum", use.parameter_sum},
                       {"flops", use.flops}};
  nlohmann::ordered_json value{{"kind", "model card"},
                               {"producer", card.producer},
                               {"opset", card.opset},
                               {"batch", card.batch},
                               {"input_elements", card.input_elements},
                               {"operators", operators},
                               {"parameters", card.parameters},
                               {"parameter_bytes", card.parameter_bytes},
                               {"parameter_tensors", card.parameter_tensors},
                               {"activation_bytes", card.activation_bytes},
                               {"traffic_bytes", card.traffic_bytes},
                               {"flops", card.flops},
                               {"depth", card.depth},
                               {"launches", card.launches},
                               {"unknown_operators", card.unknown_operators},
                               {"unknown_shapes", card.unknown_shapes},
                               {"guessed", card.guessed},
                               {"uncertain", card.uncertain()}};
  if (card.job) value["job"] = job_json(*card.job);
  return value;
}

}  // namespace tierpilot::sharing
