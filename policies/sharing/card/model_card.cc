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
                        {"Acos", "Elementwise"},
                        {"Add", "AddV2"},
                        {"And", "Elementwise"},
                        {"ArgMax", "Reduce"},
                        {"ArgMin", "Reduce"},
                        {"Asin", "Elementwise"},
                        {"Atan", "Elementwise"},
                        {"Attention", "Attention"},
                        {"AveragePool", "AvgPool"},
                        {"BatchNormalization", "BatchNorm"},
                        {"Bernoulli", "Dropout"},
                        {"Cast", "Elementwise"},
                        {"CastLike", "Elementwise"},
                        {"Ceil", "Elementwise"},
                        {"Celu", "Activation"},
                        {"Clip", "ReLU"},
                        {"Concat", "Concat"},
                        {"ConstantOfShape", "Shape"},
                        {"Conv", "Conv2D"},
                        {"ConvTranspose", "Conv2DTranspose"},
                        {"Cos", "Elementwise"},
                        {"Cosh", "Elementwise"},
                        {"CumSum", "Reduce"},
                        {"DepthToSpace", "Shape"},
                        {"Div", "Mul"},
                        {"Dropout", "Dropout"},
                        {"Einsum", "MatMul"},
                        {"Elu", "Activation"},
                        {"Equal", "Elementwise"},
                        {"Erf", "Elementwise"},
                        {"Exp", "Elementwise"},
                        {"Expand", "Shape"},
                        {"EyeLike", "Shape"},
                        {"Flatten", "Shape"},
                        {"Floor", "Elementwise"},
                        {"GRU", "Recurrent"},
                        {"Gather", "Gather"},
                        {"GatherElements", "Gather"},
                        {"GatherND", "Gather"},
                        {"Gelu", "Activation"},
                        {"Gemm", "MatMul"},
                        {"GlobalAveragePool", "AvgPool"},
                        {"GlobalMaxPool", "MaxPool"},
                        {"Greater", "Elementwise"},
                        {"GreaterOrEqual", "Elementwise"},
                        {"GroupNormalization", "LayerNorm"},
                        {"HardSigmoid", "Activation"},
                        {"HardSwish", "Activation"},
                        {"Hardmax", "Softmax"},
                        {"Identity", "Shape"},
                        {"InstanceNormalization", "LayerNorm"},
                        {"IsInf", "Elementwise"},
                        {"IsNaN", "Elementwise"},
                        {"LRN", "LayerNorm"},
                        {"LSTM", "Recurrent"},
                        {"LayerNormalization", "LayerNorm"},
                        {"LeakyRelu", "Activation"},
                        {"Less", "Elementwise"},
                        {"LessOrEqual", "Elementwise"},
                        {"Log", "Elementwise"},
                        {"LogSoftmax", "Softmax"},
                        {"LpNormalization", "LayerNorm"},
                        {"MatMul", "MatMul"},
                        {"Max", "Elementwise"},
                        {"MaxPool", "MaxPool"},
                        {"Mean", "AddV2"},
                        {"MeanVarianceNormalization", "LayerNorm"},
                        {"Min", "Elementwise"},
                        {"Mish", "Activation"},
                        {"Mod", "Elementwise"},
                        {"Mul", "Mul"},
                        {"Neg", "Elementwise"},
                        {"NegativeLogLikelihoodLoss", "Elementwise"},
                        {"Not", "Elementwise"},
                        {"OneHot", "Gather"},
                        {"Or", "Elementwise"},
                        {"PRelu", "Activation"},
                        {"Pad", "Shape"},
                        {"Pow", "Elementwise"},
                        {"RNN", "Recurrent"},
                        {"Range", "Shape"},
                        {"Reciprocal", "Elementwise"},
                        {"ReduceL1", "Reduce"},
                        {"ReduceL2", "Reduce"},
                        {"ReduceLogSum", "Reduce"},
                        {"ReduceLogSumExp", "Reduce"},
                        {"ReduceMax", "Reduce"},
                        {"ReduceMean", "Reduce"},
                        {"ReduceMin", "Reduce"},
                        {"ReduceProd", "Reduce"},
                        {"ReduceSum", "Reduce"},
                        {"ReduceSumSquare", "Reduce"},
                        {"Relu", "ReLU"},
                        {"Reshape", "Shape"},
                        {"Resize", "Resize"},
                        {"Round", "Elementwise"},
                        {"Scatter", "Gather"},
                        {"ScatterElements", "Gather"},
                        {"ScatterND", "Gather"},
                        {"Selu", "Activation"},
                        {"Shape", "Shape"},
                        {"Sigmoid", "Activation"},
                        {"Sign", "Elementwise"},
                        {"Sin", "Elementwise"},
                        {"Sinh", "Elementwise"},
                        {"Size", "Shape"},
                        {"Slice", "Shape"},
                        {"Softmax", "Softmax"},
                        {"SoftmaxCrossEntropyLoss", "Softmax"},
                        {"Softplus", "Activation"},
                        {"Softsign", "Activation"},
                        {"SpaceToDepth", "Shape"},
                        {"Split", "Shape"},
                        {"Sqrt", "Elementwise"},
                        {"Squeeze", "Shape"},
                        {"Sub", "AddV2"},
                        {"Sum", "AddV2"},
                        {"Tan", "Elementwise"},
                        {"Tanh", "Activation"},
                        {"ThresholdedRelu", "ReLU"},
                        {"Tile", "Shape"},
                        {"TopK", "Reduce"},
                        {"Transpose", "Transpose"},
                        {"Trilu", "Elementwise"},
                        {"Unsqueeze", "Shape"},
                        {"Upsample", "Resize"},
                        {"Where", "Elementwise"},
                        {"Xor", "Elementwise"}};

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
