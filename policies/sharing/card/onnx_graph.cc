#include "policies/sharing/card/onnx_graph.h"

#include <fmt/format.h>

#include <unordered_set>

#include "policies/sharing/card/onnx_scope.h"
#include "policies/sharing/card/onnx_values.h"
#include "policies/sharing/card/plain_name.h"

namespace tierpilot::sharing {
namespace {

constexpr int kMaxOperators = 1'000'000;
constexpr size_t kMostGuessed = 64;  // that are told
constexpr int kMaxNesting = 16;      // of bodies of If, Loop and Scan

// As people find it in the file: many exporters name values only.
std::string label(const onnx::NodeProto& node) {
  if (!node.name().empty() || node.output_size() == 0)
    return fmt::format("operator '{}' ({})", plain_name(node.name()), plain_name(node.op_type()));
  return fmt::format("the {} that makes '{}'", plain_name(node.op_type()),
                     plain_name(node.output(0)));
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
        return wrong_model(name, fmt::format("{}: its '{}' has {}, and has to be 1 or more",
                                             label(node), attribute.name(), value));
  }
  if (node.op_type() == "Split" && node.output_size() == 0)
    return wrong_model(name, fmt::format("{}: it splits into nothing", label(node)));
  return {};
}

using Made = Scope<bool>;

// What is there before the first operator. Old files list parameters among inputs, too.
Status put_given(const onnx::GraphProto& graph, const std::string& name, Made& made) {
  std::unordered_set<std::string> inputs, parameters;
  const auto once = [&](std::unordered_set<std::string>& seen, const char* what,
                        const std::string& given) -> Status {
    if (!seen.insert(given).second)
      return wrong_model(name, fmt::format("{} '{}' is there twice: the file is broken, export it "
                                           "again",
                                           what, plain_name(given)));
    made.put(given, true);
    return {};
  };
  Status status;
  for (const auto& input : graph.input())
    if (status) status = once(inputs, "input", input.name());
  for (const auto& tensor : graph.initializer()) {
    if (status) status = once(parameters, "parameter", tensor.name());
    if (status) status = check_bytes(tensor, name);
  }
  for (const auto& tensor : graph.sparse_initializer()) {
    if (status) status = once(parameters, "parameter", tensor.values().name());
    if (status) status = check_bytes(tensor.values(), name);
  }
  return status;
}

// Operators come after those whose values they take, as ONNX demands: so a circle has a first
// operator that takes what comes later.
Status check_order(const onnx::GraphProto& graph, const std::string& name, const Made* outer,
                   int nesting) {
  if (nesting > kMaxNesting)
    return wrong_model(
        name, fmt::format("bodies of operators are nested more than {} deep", kMaxNesting));
  Made made(outer);
  if (auto status = put_given(graph, name, made); !status) return status;
  for (const auto& node : graph.node()) {
    for (const auto& input : node.input())
      if (!input.empty() && !made.find(input))
        return wrong_model(
            name, fmt::format("{} takes '{}', which none before it makes: "
                              "operators wait for each other in a circle, or one is missing",
                              label(node), plain_name(input)));
    if (auto status = check_attributes(node, name); !status) return status;
    for (const auto& attribute : node.attribute())
      if (auto status = check_bytes(attribute.t(), name); !status) return status;
    for (const auto& attribute : node.attribute())
      if (attribute.has_g())
        if (auto status = check_order(attribute.g(), name, &made, nesting + 1); !status)
          return status;
    for (const auto& output : node.output()) {
      if (output.empty()) continue;
      if (made.find(output))
        return wrong_model(name, fmt::format("value '{}' is made twice", plain_name(output)));
      made.put(output, true);
    }
  }
  return {};
}

}  // namespace

Status check_graph(const onnx::GraphProto& graph, const std::string& name) {
  if (graph.node_size() == 0) return wrong_model(name, "it has no operators; is it an ONNX file?");
  if (graph.node_size() > kMaxOperators)
    return wrong_model(name, fmt::format("it has more than {} operators", kMaxOperators));
  return check_order(graph, name, nullptr, 0);
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
    const auto shown = plain_name(input.name());
    if (fixed > int64_t{kMaxBatch})
      return wrong_model(name,
                         fmt::format("input '{}' has a batch of {}, and {} is the most: export "
                                     "it with a smaller or an open first dimension",
                                     shown, fixed, kMaxBatch));
    if (wanted && *wanted != fixed)
      return wrong_model(name,
                         fmt::format("input '{}' has a batch of {}, and so no other: leave out "
                                     "--batch, or export it with an open first dimension",
                                     shown, fixed));
    return static_cast<uint32_t>(fixed);
  }
  return wanted.value_or(1);
}

void open_dimensions(onnx::GraphProto& graph) {
  for (auto* infos : {graph.mutable_value_info(), graph.mutable_output()})
    for (auto& info : *infos) {
      if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) continue;
      for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (dim.has_dim_value() && dim.dim_value() <= 0) dim.clear_dim_value();
    }
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) open_dimensions(*attribute.mutable_g());
}

std::vector<std::string> close_dimensions(onnx::GraphProto& graph, uint32_t batch,
                                          bool batch_is_told) {
  std::vector<std::string> guessed;
  size_t others = 0;
  for (auto& input : *graph.mutable_input()) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) continue;
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (shape.dim(i).has_dim_value() && shape.dim(i).dim_value() > 0) continue;
      const uint32_t size = i == 0 ? batch : 1;
      shape.mutable_dim(i)->set_dim_value(size);
      if (i == 0 && batch_is_told) continue;
      if (guessed.size() < kMostGuessed)
        guessed.push_back(fmt::format("{}[{}] = {}", plain_name(input.name()), i, size));
      else
        ++others;
    }
  }
  if (others > 0) guessed.push_back(fmt::format("{} others", others));
  return guessed;
}

}  // namespace tierpilot::sharing
