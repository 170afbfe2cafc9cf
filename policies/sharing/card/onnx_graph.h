// The graph of an ONNX model, checked, with the shapes of its values.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace tierpilot::sharing {

struct Value {
  std::optional<double> elements;  // nothing: nobody knows
  std::vector<double> dims;
  double element_bytes = 4;
  bool is_parameter = false;
};

using Values = std::unordered_map<std::string, Value>;

// Refuses what is no graph: see describe_onnx.
Status check_graph(const onnx::GraphProto& graph, const std::string& name);

// The first dimension of the first input that has one; where that is open, `wanted` or 1. kInvalid:
// it is fixed, and another one is wanted.
Result<uint32_t> batch_of(const onnx::GraphProto& graph, std::optional<uint32_t> wanted,
                          const std::string& name);

// Open dimensions of inputs get a size, and are told.
std::vector<std::string> close_dimensions(onnx::GraphProto& graph, uint32_t batch);

// Of inputs, initializers and all that shape inference told.
Result<Values> values_of(const onnx::GraphProto& graph, const std::string& name);

}  // namespace tierpilot::sharing
