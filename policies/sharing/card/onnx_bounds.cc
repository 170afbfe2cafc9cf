#include "policies/sharing/card/onnx_bounds.h"

#include <onnx/defs/shape_inference.h>

#include <utility>

#include "policies/sharing/card/onnx_later.h"
#include "policies/sharing/card/onnx_overflow.h"

namespace tierpilot::sharing {
namespace {

constexpr int kMostDimensions = 64;
constexpr int kMostSizes = 64;       // in a list
constexpr double kMostCopied = 2e7;  // names; it is a few seconds

bool is_too_large(const onnx::TypeProto* type) {
  return type && type->has_tensor_type() &&
         type->tensor_type().shape().dim_size() > kMostDimensions;
}

double names_in(const onnx::GraphProto& graph) {
  double names = graph.input_size() + graph.initializer_size();
  for (const auto& node : graph.node()) {
    names += node.output_size();
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) names += names_in(attribute.g());
  }
  return names;
}

class BoundedData final : public onnx::DataPropagationContext {
 public:
  explicit BoundedData(onnx::DataPropagationContext& whole) : whole_(whole) {}

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return whole_.getAttribute(name);
  }
  size_t getNumInputs() const override { return whole_.getNumInputs(); }
  const onnx::TypeProto* getInputType(size_t index) const override {
    return whole_.getInputType(index);
  }
  size_t getNumOutputs() const override { return whole_.getNumOutputs(); }
  const onnx::TypeProto* getOutputType(size_t index) const override {
    return whole_.getOutputType(index);
  }
  const onnx::TensorShapeProto* getInputData(size_t index) override {
    return whole_.getInputData(index);
  }
  void addOutputData(size_t index, onnx::TensorShapeProto&& data) override {
    if (data.dim_size() <= kMostSizes) whole_.addOutputData(index, std::move(data));
  }

 private:
  onnx::DataPropagationContext& whole_;
};

}  // namespace

BoundedSchemas::BoundedSchemas(const onnx::GraphProto& graph) : names_(names_in(graph)) {}

const onnx::OpSchema* BoundedSchemas::GetSchema(const std::string& key, int most_version,
                                                const std::string& domain) const {
  const auto* schema = onnx::OpSchemaRegistry::Instance()->GetSchema(key, most_version, domain);
  if (!schema && domain.empty()) schema = later_schema(key);
  if (!schema) return nullptr;
  auto& bounded = bounded_[schema];
  if (bounded) return bounded.get();
  bounded = std::make_unique<onnx::OpSchema>(*schema);
  if (schema->has_type_and_shape_inference_function()) bound_shapes(*schema, *bounded);
  if (schema->has_data_propagation_function())
    bounded->PartialDataPropagationFunction(
        [kind = schema->Name(),
         whole = schema->GetDataPropagationFunction()](onnx::DataPropagationContext& context) {
          if (may_overflow(kind, context)) return;
          BoundedData data(context);
          whole(data);
        });
  return bounded.get();
}

void BoundedSchemas::bound_shapes(const onnx::OpSchema& schema, onnx::OpSchema& bounded) const {
  double bodies = 0;
  for (const auto& [name, attribute] : schema.attributes())
    bodies += attribute.type == onnx::AttributeProto::GRAPH;
  bounded.TypeAndShapeInferenceFunction(
      [this, bodies, kind = schema.Name(),
       whole = schema.GetTypeAndShapeInferenceFunction()](onnx::InferenceContext& context) {
        for (size_t i = 0; i < context.getNumInputs(); ++i)
          if (is_too_large(context.getInputType(i))) return;
        if (may_overflow(kind, context)) return;
        if (bodies > 0 && copied_ + bodies * names_ > kMostCopied) return;
        copied_ += bodies * names_;
        whole(context);
      });
}

}  // namespace tierpilot::sharing
