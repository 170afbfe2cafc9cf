#include "policies/sharing/card/onnx_later.h"

#include <onnx/defs/shape_inference.h>

#include <map>

namespace tierpilot::sharing {
namespace {

constexpr size_t kQuery = 0, kValue = 2;

int64_t heads(onnx::InferenceContext& context, const char* name) {
  const auto* said = context.getAttribute(name);
  return said ? said->i() : 0;
}

// The queries' positions with the values' width: of each head by itself, or of all side by side.
void infer_attention(onnx::InferenceContext& context) {
  onnx::propagateElemTypeFromInputToOutput(context, kQuery, 0);
  if (context.getNumInputs() <= kValue || !onnx::hasInputShape(context, kQuery) ||
      !onnx::hasInputShape(context, kValue))
    return;
  const auto& query = onnx::getInputShape(context, kQuery);
  const auto& value = onnx::getInputShape(context, kValue);
  const int dims = query.dim_size();
  if (value.dim_size() != dims || (dims != 3 && dims != 4)) return;
  auto& made = *onnx::getOutputShape(context, 0);
  made.Clear();
  for (int i = 0; i + 1 < dims; ++i) *made.add_dim() = query.dim(i);
  auto& width = *made.add_dim();
  const auto& given = value.dim(dims - 1);
  const auto of_queries = heads(context, "q_num_heads"), of_values = heads(context, "kv_num_heads");
  if (dims == 4 || of_queries == of_values)
    width = given;
  else if (int64_t all = 0;
           given.has_dim_value() && of_queries > 0 && of_values > 0 &&
           !__builtin_mul_overflow(given.dim_value() / of_values, of_queries, &all))
    width.set_dim_value(all);
}

onnx::OpSchema schema(onnx::InferenceFunction infer) {
  onnx::OpSchema made;
  made.TypeAndShapeInferenceFunction(std::move(infer));
  return made;
}

}  // namespace

const onnx::OpSchema* later_schema(const std::string& kind) {
  static const auto like_its_input = schema(onnx::propagateShapeAndTypeFromFirstInput);
  static const auto attention = schema(infer_attention);
  static const std::map<std::string, const onnx::OpSchema*> schemas{
      {"Attention", &attention},
      {"Gelu", &like_its_input},
      {"GroupNormalization", &like_its_input},
      {"Mish", &like_its_input}};
  const auto found = schemas.find(kind);
  return found == schemas.end() ? nullptr : found->second;
}

}  // namespace tierpilot::sharing
