// Sizes of the values of an ONNX graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sharing/card/onnx_scope.h"

namespace tierpilot::sharing {

struct Value {
  std::optional<double> elements;  // nothing: nobody knows. Of a sparse one those that are kept
  std::vector<double> dims;
  double density = 1;  // of a sparse one what part of its elements are kept
  double element_bytes = 4;
  bool is_parameter = false;
  bool is_size = false;  // a parameter of a few whole numbers: a shape, an axis; no weight

  double bytes() const;  // 0 where nobody knows
};

using Values = Scope<Value>;

// Of inputs, initializers, constants that are weights, and all that shape inference told; `outer`
// are those of the graph that its operator is in.
Result<Values> values_of(const onnx::GraphProto& graph, const std::string& name,
                         const Values* outer = nullptr);

// kInvalid: a tensor's bytes are not those of its dimensions, which ONNX's own readers believe.
Status check_bytes(const onnx::TensorProto& tensor, const std::string& name);

}  // namespace tierpilot::sharing
