#include "policies/sharing/card/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/card/onnx_cost.h"
#include "policies/sharing/card/onnx_graph.h"
#include "policies/sharing/card/onnx_shapes.h"
#include "policies/sharing/card/onnx_values.h"
#include "policies/sharing/card/plain_name.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostNamed = 100;  // unknown operators

// A graph, and the way to it.
struct Frame {
  Values values;
  Scope<uint64_t> depths;
  uint64_t before = 0;   // operators on the path that leads to it
  uint64_t deepest = 0;  // on the longest path that ends in it
};

class Describer {
 public:
  Describer(ModelCard& card, const std::string& name) : card_(card), name_(name) {}

  Status graph(const onnx::GraphProto& graph, Frame& frame) {
    add_parameters(frame.values);
    for (const auto& node : graph.node()) {
      if (is_constant(node) || is_of_parameter(node, frame.values)) continue;
      const uint64_t start = add(node, frame);
      uint64_t end = start;
      for (const auto& attribute : node.attribute()) {
        if (!attribute.has_g()) continue;
        const auto inside = body(attribute.g(), frame, start);
        if (!inside) return tl::unexpected(inside.error());
        end = std::max(end, *inside);
      }
      for (const auto& output : node.output()) frame.depths.put(output, end);
      frame.deepest = std::max(frame.deepest, end);
    }
    card_.depth = std::max(card_.depth, frame.deepest);
    return {};
  }

 private:
  // Operators on the longest path that ends in it.
  Result<uint64_t> body(const onnx::GraphProto& graph, const Frame& outer, uint64_t before) {
    auto values = values_of(graph, name_, &outer.values);
    if (!values) return tl::unexpected(values.error());
    Frame frame{std::move(*values), Scope<uint64_t>(&outer.depths), before, before};
    if (auto status = this->graph(graph, frame); !status) return tl::unexpected(status.error());
    return frame.deepest;
  }

  void add_parameters(const Values& values) {
    for (const auto& [name, value] : values.own()) {
      if (!value.is_parameter || value.is_size) continue;
      card_.parameters += *value.elements;
      card_.parameter_bytes += value.bytes();
      ++card_.parameter_tensors;
    }
  }

  // It runs nothing, be it a weight or a size.
  static bool is_constant(const onnx::NodeProto& node) {
    return node.op_type() == "Constant" && (node.domain().empty() || node.domain() == "ai.onnx");
  }

  // A transposed weight is still that weight, and costs nothing.
  static bool is_of_parameter(const onnx::NodeProto& node, Values& values) {
    static const std::set<std::string> kViews{"Transpose", "Reshape",   "Flatten",
                                              "Squeeze",   "Unsqueeze", "Identity"};
    if (!kViews.contains(node.op_type()) || node.input_size() == 0 || node.output_size() != 1 ||
        !(node.domain().empty() || node.domain() == "ai.onnx"))
      return false;
    const auto* weight = values.find(node.input(0));
    if (!weight || !weight->is_parameter) return false;
    const auto* known = values.find(node.output(0));
    Value seen = known && known->elements ? *known : *weight;
    if (weight->density < 1) seen.elements = weight->elements;
    seen.density = weight->density;
    seen.is_parameter = true;
    values.put(node.output(0), std::move(seen));
    return true;
  }

  // Operators on the longest path that ends with it.
  uint64_t add(const onnx::NodeProto& node, const Frame& frame) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    auto kind = standard ? operator_kind(node.op_type()) : std::string_view{};
    if (kind.empty()) {
      count_unknown(node);
      kind = "Unknown";
    }
    if (kind == "Conv2D" && is_depthwise(node, frame.values)) kind = "DepthwiseConv2D";
    auto& use = card_.operators[std::string(kind)];
    card_.launches += kind == "Recurrent" ? recurrent_launches(node, frame.values) : 1;
    ++use.count;
    const uint64_t depth = take_inputs(node, frame, use);
    const bool sized = make_outputs(node, frame.values, use);
    if (kind.find("Conv2D") != kind.npos && node.input_size() > 2 && !node.input(2).empty())
      ++card_.operators["BiasAdd"].count;
    const auto flops = forward_flops(node, kind, frame.values);
    if (!flops && kind == "MatMul" && node.op_type() == "Einsum")
      count_unknown(node);
    else if (!flops && sized)
      ++card_.unknown_shapes;  // of an input
    use.flops += flops.value_or(0);
    card_.flops += flops.value_or(0);
    return depth;
  }

  // A filter sees one of several channels.
  static bool is_depthwise(const onnx::NodeProto& node, const Values& values) {
    if (node.input_size() < 2) return false;
    const auto *data = values.find(node.input(0)), *weight = values.find(node.input(1));
    return data && weight && data->dims.size() > 1 && weight->dims.size() > 1 &&
           weight->dims[1] == 1 && data->dims[1] > 1;
  }

  void count_unknown(const onnx::NodeProto& node) {
    const auto name =
        plain_name((node.domain().empty() ? "" : node.domain() + ".") + node.op_type());
    auto& unknown = card_.unknown_operators;
    ++unknown[unknown.size() < kMostNamed || unknown.contains(name) ? name : "others"];
  }

  uint64_t take_inputs(const onnx::NodeProto& node, const Frame& frame, OperatorUse& use) {
    uint64_t depth = frame.before;
    for (const auto& name : node.input()) {
      if (const auto* before = frame.depths.find(name)) depth = std::max(depth, *before);
      const auto* value = frame.values.find(name);
      if (!value || !value->elements) continue;
      card_.traffic_bytes += value->bytes();
      if (value->is_parameter) {
        use.parameter_sum += *value->elements;
        continue;
      }
      use.largest_input = std::max(use.largest_input, *value->elements);
      use.input_sum += *value->elements;
    }
    return depth + 1;
  }

  // Whether the sizes of all are known.
  bool make_outputs(const onnx::NodeProto& node, const Values& values, OperatorUse& use) {
    bool sized = true;
    for (const auto& name : node.output()) {
      if (name.empty()) continue;
      const auto* value = values.find(name);
      if (!value || !value->elements) {
        ++card_.unknown_shapes;
        sized = false;
        continue;
      }
      use.output_sum += *value->elements;
      card_.activation_bytes += value->bytes();
      card_.traffic_bytes += value->bytes();
    }
    return sized;
  }

  ModelCard& card_;
  const std::string& name_;
};

double input_elements(const onnx::GraphProto& graph, const Values& values) {
  double elements = 0;
  for (const auto& input : graph.input())
    if (const auto* value = values.find(input.name()); value && !value->is_parameter)
      elements += value->elements.value_or(0);
  return elements;
}

// What is described has to be good for those who take cards.
Status check_limits(const ModelCard& card, const std::string& name) {
  auto value = card_json(card);
  value["schema"] = 1;
  const auto read =
      read_card(value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  if (read) return {};
  return wrong_model(name, fmt::format("no card can be made of it: {}", read.error().message));
}

}  // namespace

Result<ModelCard> describe_onnx(std::string_view bytes, const std::string& name,
                                std::optional<uint32_t> wanted_batch) {
  onnx::ModelProto model;
  if (bytes.size() > kMaxModelBytes ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return wrong_model(name,
                       "it is no ONNX file, or is cut off; models over 2 GiB have to keep their "
                       "parameters in files of their own");
  auto& graph = *model.mutable_graph();
  if (auto status = check_graph(graph, name); !status) return tl::unexpected(status.error());
  const auto batch = batch_of(graph, wanted_batch, name);
  if (!batch) return tl::unexpected(batch.error());
  ModelCard card{.producer = plain_name(model.producer_name()), .batch = *batch};
  for (const auto& opset : model.opset_import())
    if (opset.domain().empty()) card.opset = opset.version();
  open_dimensions(graph);
  card.guessed = close_dimensions(graph, *batch, wanted_batch.has_value());
  infer_shapes(model);
  auto values = values_of(graph, name);
  if (!values) return tl::unexpected(values.error());
  Frame frame{std::move(*values), Scope<uint64_t>()};
  card.input_elements = input_elements(graph, frame.values);
  if (auto status = Describer(card, name).graph(graph, frame); !status)
    return tl::unexpected(status.error());
  if (auto status = check_limits(card, name); !status) return tl::unexpected(status.error());
  return card;
}

}  // namespace tierpilot::sharing
