#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/mebibyte.h"

#include <cmath>
#include <set>

namespace tierpilot::sharing {
namespace {

const OperatorUse& use_of(const ModelCard& card, const char* kind) {
  static const OperatorUse kNone;
  const auto found = card.operators.find(kind);
  return found == card.operators.end() ? kNone : found->second;
}

double moved(const OperatorUse& use) {
  return use.input_sum + use.output_sum;
}

// A depthwise product is used once, so that memory is what it waits for.
constexpr double kFlops = 1e7, kDepthwiseFlops = 1e6, kElements = 1e6, kOperators = 20;

enum class Optimizer { kPlain, kMomentum, kAdam, kScaled };

Optimizer optimizer_of(const std::string& name) {
  if (name == "SGD") return Optimizer::kPlain;
  if (name == "SGD+momentum") return Optimizer::kMomentum;
  if (name == "RMSprop" || name == "Adagrad") return Optimizer::kScaled;
  return Optimizer::kAdam;
}

std::string optimizer_name(const ModelCard& card) {
  return card.job ? card.job->optimizer : std::string();
}

}  // namespace

bool is_known_optimizer(const std::string& optimizer) {
  static const std::set<std::string> kLikeAdam{"Adam", "AdamW", "Adamax", "NAdam", "RAdam"};
  return optimizer.empty() || optimizer_of(optimizer) != Optimizer::kAdam ||
         kLikeAdam.contains(optimizer);
}

int optimizer_states(const std::string& optimizer) {
  switch (optimizer_of(optimizer)) {
    case Optimizer::kPlain:
      return 0;
    case Optimizer::kMomentum:
    case Optimizer::kScaled:
      return 1;
    case Optimizer::kAdam:
      return 2;
  }
  return 2;
}

Row work_row(const ModelCard& card) {
  const auto use = [&](const char* kind) { return use_of(card, kind); };
  double plain = 0, recurrent = static_cast<double>(card.launches);
  for (const auto& [kind, each] : card.operators) {
    const auto count = static_cast<double>(each.count);
    if (kind != "BiasAdd" && kind != "Recurrent") recurrent -= count;
    if (kind != "BiasAdd" && kind != "Shape" && kind != "Transpose") plain += count;
  }
  const auto shapes = static_cast<double>(use("Shape").count + use("Transpose").count);
  const auto normed = static_cast<double>(use("BatchNorm").count + use("LayerNorm").count);
  const auto convolved = static_cast<double>(use("Conv2D").count + use("DepthwiseConv2D").count +
                                             use("Conv2DTranspose").count);
  Row row{
      1,
      plain / kOperators,
      shapes / kOperators,
      normed / kOperators,
      convolved / kOperators,
      std::max(recurrent, 0.0) / kOperators,
      (use("MatMul").flops + use("Recurrent").flops + use("Attention").flops) / kFlops,
      moved(use("MatMul")) / kElements,
      use("MatMul").parameter_sum / kElements,
      use("Conv2D").flops / kFlops,
      use("Conv2D").input_sum / kElements,
      use("Conv2D").output_sum / kElements,
      use("DepthwiseConv2D").flops / kDepthwiseFlops,
      moved(use("DepthwiseConv2D")) / kElements,
      use("Conv2DTranspose").flops / kFlops,
      moved(use("Conv2DTranspose")) / kElements,
      use("Recurrent").output_sum / kElements,
      (moved(use("AddV2")) + moved(use("Mul")) + moved(use("ReLU"))) / kElements,
      use("Activation").output_sum / kElements,
      (use("Elementwise").output_sum + use("Unknown").output_sum) / kElements,
      use("Softmax").output_sum / kElements,
      use("BatchNorm").output_sum / kElements,
      use("LayerNorm").output_sum / kElements,
      use("Dropout").output_sum / kElements,
      use("MaxPool").flops / kElements,
      (use("AvgPool").flops + moved(use("Resize"))) / kElements,
      moved(use("Gather")) / kElements,
      use("Gather").parameter_sum / kElements,
      use("Reduce").input_sum / kElements,
      (moved(use("Concat")) + use("Transpose").output_sum + use("Shape").output_sum) / kElements,
      static_cast<double>(card.parameter_tensors) / kOperators,
      card.parameters / kElements};
  const auto own = optimizer_of(optimizer_name(card));
  for (const auto each :
       {Optimizer::kPlain, Optimizer::kMomentum, Optimizer::kAdam, Optimizer::kScaled}) {
    row.push_back(own == each ? static_cast<double>(card.parameter_tensors) / kOperators : 0);
    row.push_back(own == each ? card.parameters / kElements : 0);
  }
  return row;
}

const std::vector<WorkPart>& work_parts() {
  static const std::vector<WorkPart> kParts = [] {
    const WorkPart calls{WorkKind::kCalls, kOperators}, elements{WorkKind::kElements, kElements};
    const WorkPart operations{WorkKind::kOperations, kFlops};
    std::vector<WorkPart> parts(6, calls);
    parts.insert(parts.end(), {operations,
                               elements,
                               elements,
                               operations,
                               elements,
                               elements,
                               {WorkKind::kOperations, kDepthwiseFlops},
                               elements,
                               operations,
                               elements});
    parts.insert(parts.end(), 14, elements);
    for (int tensors_and_values = 0; tensors_and_values < 5; ++tensors_and_values)
      parts.insert(parts.end(), {calls, elements});
    return parts;
  }();
  return kParts;
}

Row memory_row(const ModelCard& card) {
  const auto made = [&](const char* kind) { return 4 * use_of(card, kind).output_sum / kMib; };
  const auto taken = [&](const char* kind) { return 4 * use_of(card, kind).input_sum / kMib; };
  const int states = optimizer_states(optimizer_name(card));
  double largest = 0;
  for (const auto& [kind, each] : card.operators)
    largest = std::max(largest, 4 * each.largest_input / kMib);
  const double parameters = card.parameter_bytes / kMib;
  double saved = 0, kinds = 0;  // what a backward pass may want; code that is loaded for a kind
  for (const auto& [kind, each] : card.operators) {
    kinds += each.count > 0;
    if (kind != "Shape" && kind != "Transpose" && kind != "Elementwise")
      saved += 4 * each.output_sum / kMib;
  }
  return {1,
          saved,
          kinds / 10,
          static_cast<double>(card.parameter_tensors) / 100,
          parameters,
          parameters * states,
          static_cast<double>(card.launches) / 100,
          largest,
          4 * card.input_elements / kMib,
          made("MatMul"),
          made("Conv2D"),
          taken("Conv2D"),
          made("DepthwiseConv2D"),
          made("Conv2DTranspose") + taken("Conv2DTranspose"),
          made("Recurrent"),
          use_of(card, "Recurrent").flops / 1e7,
          made("AddV2") + made("Mul"),
          made("ReLU"),
          made("Activation"),
          made("Elementwise") + made("Unknown"),
          made("Softmax"),
          made("BatchNorm"),
          made("LayerNorm"),
          made("Dropout"),
          made("MaxPool") + made("AvgPool"),
          made("Gather"),
          made("Concat"),
          made("Shape"),
          made("Transpose"),
          made("Attention") + taken("Attention"),
          4 * use_of(card, "Gather").parameter_sum / kMib,
          4 * use_of(card, "Conv2D").parameter_sum / kMib,
          4 * use_of(card, "MatMul").parameter_sum / kMib,
          static_cast<double>(use_of(card, "Conv2D").count + use_of(card, "DepthwiseConv2D").count +
                              use_of(card, "Conv2DTranspose").count) /
              10};
}

Row figures_row(const ModelCard& card) {
  const auto log = [](double value) { return std::log1p(value); };
  const auto launches = static_cast<double>(card.launches);
  Row row{log(card.flops),
          log(card.activation_bytes),
          log(card.traffic_bytes),
          log(card.parameters),
          log(static_cast<double>(card.parameter_tensors)),
          log(static_cast<double>(card.depth)),
          log(launches),
          log(card.batch),
          log(card.input_elements),
          log(card.flops / std::max(launches, 1.0)),
          log(card.activation_bytes / std::max(launches, 1.0)),
          static_cast<double>(optimizer_states(optimizer_name(card)))};
  for (const auto kind : operator_kinds()) {
    const auto& use = use_of(card, std::string(kind).c_str());
    row.push_back(log(static_cast<double>(use.count)));
    row.push_back(log(use.input_sum));
    row.push_back(log(use.output_sum));
    row.push_back(log(use.flops));
  }
  return row;
}

Row published_row(const ModelCard& card) {
  Row row;
  for (const auto kind : operator_kinds())
    row.push_back(std::log1p(use_of(card, std::string(kind).c_str()).largest_input));
  row.push_back(std::log1p(card.batch));
  row.push_back(std::log1p(card.job ? static_cast<double>(card.job->iterations) : 0));
  row.push_back(std::log1p(card.input_elements));
  return row;
}

}  // namespace tierpilot::sharing
