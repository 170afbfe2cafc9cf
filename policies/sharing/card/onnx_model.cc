#include "policies/sharing/card/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "policies/sharing/card/onnx_cost.h"
#include "policies/sharing/card/onnx_graph.h"
#include "policies/sharing/card/onnx_shapes.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostNamed = 100;  // unknown operators
constexpr size_t kMostNameBytes = 80;

class Describer {
 public:
  Describer(ModelCard& card, const Values& values) : card_(card), values_(values) {}

  void graph(const onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
      add(node);
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) this->graph(attribute.g());
    }
  }

 private:
  const Value* find(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }

  void add(const onnx::NodeProto& node) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    auto kind = standard ? operator_kind(node.op_type()) : std::string_view{};
    if (kind.empty()) {
      count_unknown(node);
      kind = "Unknown";
    }
    if (kind == "Conv2D" && is_depthwise(node)) kind = "DepthwiseConv2D";
    auto& use = card_.operators[std::string(kind)];
    card_.launches += kind == "Recurrent" ? launches(node) : 1;
    ++use.count;
    take_inputs(node, use);
    make_outputs(node, use);
    if (node.op_type() == "Conv" && node.input_size() > 2) ++card_.operators["BiasAdd"].count;
    const double flops = forward_flops(node, kind, values_);
    use.flops += flops;
    card_.flops += flops;
  }

  // A filter sees one of several channels.
  bool is_depthwise(const onnx::NodeProto& node) const {
    if (node.input_size() < 2) return false;
    const auto *data = find(node.input(0)), *weight = find(node.input(1));
    return data && weight && data->dims.size() > 1 && weight->dims.size() > 1 &&
           weight->dims[1] == 1 && data->dims[1] > 1;
  }

  // What a framework runs for it where it has no such operator as a whole, step by step; its
  // weights have a part for each direction.
  uint64_t launches(const onnx::NodeProto& node) const {
    const auto* data = node.input_size() > 1 ? find(node.input(0)) : nullptr;
    const auto* weight = data ? find(node.input(1)) : nullptr;
    if (!weight || data->dims.empty() || weight->dims.empty()) return 1;
    const double of_step = node.op_type() == "RNN" ? 3 : 11;
    return static_cast<uint64_t>((1 + of_step * data->dims[0]) * weight->dims[0]);
  }

  void count_unknown(const onnx::NodeProto& node) {
    auto name = (node.domain().empty() ? "" : node.domain() + ".") + node.op_type();
    name = name.substr(0, kMostNameBytes);
    for (auto& c : name)
      if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
    auto& unknown = card_.unknown_operators;
    ++unknown[unknown.size() < kMostNamed || unknown.contains(name) ? name : "others"];
  }

  void take_inputs(const onnx::NodeProto& node, OperatorUse& use) {
    uint64_t depth = 0;
    for (const auto& name : node.input()) {
      if (const auto before = depths_.find(name); before != depths_.end())
        depth = std::max(depth, before->second);
      const auto* value = find(name);
      if (!value || !value->elements) continue;
      card_.traffic_bytes += *value->elements * value->element_bytes;
      if (value->is_parameter) {
        use.parameter_sum += *value->elements;
        continue;
      }
      use.largest_input = std::max(use.largest_input, *value->elements);
      use.input_sum += *value->elements;
    }
    card_.depth = std::max(card_.depth, depth + 1);
    for (const auto& name : node.output()) depths_[name] = depth + 1;
  }

  void make_outputs(const onnx::NodeProto& node, OperatorUse& use) {
    for (const auto& name : node.output()) {
      if (name.empty()) continue;
      const auto* value = find(name);
      if (!value || !value->elements) {
        ++card_.unknown_shapes;
        continue;
      }
      const double bytes = *value->elements * value->element_bytes;
      use.output_sum += *value->elements;
      card_.activation_bytes += bytes;
      card_.traffic_bytes += bytes;
    }
  }

  ModelCard& card_;
  const Values& values_;
  std::unordered_map<std::string, uint64_t> depths_;
};

void add_sizes(ModelCard& card, const onnx::GraphProto& graph, const Values& values) {
  for (const auto& tensor : graph.initializer()) {
    const Value& value = values.at(tensor.name());
    card.parameters += *value.elements;
    card.parameter_bytes += *value.elements * value.element_bytes;
    ++card.parameter_tensors;
  }
  for (const auto& input : graph.input()) {
    const Value& value = values.at(input.name());
    if (!value.is_parameter) card.input_elements += value.elements.value_or(0);
  }
}

}  // namespace

Result<ModelCard> describe_onnx(std::string_view bytes, const std::string& name,
                                std::optional<uint32_t> wanted_batch) {
  onnx::ModelProto model;
  if (bytes.size() > kMaxModelBytes ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(ErrorCode::kInvalid,
                fmt::format("model '{}' is no ONNX file, or is cut off; models over 2 GiB have to "
                            "keep their parameters in files of their own",
                            name));
  auto& graph = *model.mutable_graph();
  if (auto status = check_graph(graph, name); !status) return tl::unexpected(status.error());
  const auto batch = batch_of(graph, wanted_batch, name);
  if (!batch) return tl::unexpected(batch.error());
  ModelCard card{.producer = model.producer_name().substr(0, kMostNameBytes), .batch = *batch};
  for (const auto& opset : model.opset_import())
    if (opset.domain().empty()) card.opset = opset.version();
  card.guessed = close_dimensions(graph, *batch);
  infer_shapes(model);
  const auto values = values_of(graph, name);
  if (!values) return tl::unexpected(values.error());
  add_sizes(card, graph, *values);
  Describer(card, *values).graph(graph);
  return card;
}

}  // namespace tierpilot::sharing
