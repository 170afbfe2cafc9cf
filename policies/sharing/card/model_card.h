// What a model is made of, as predictors see it: by operator kind, not by name.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tierpilot::sharing {

struct OperatorUse {
  uint64_t count = 0;
  double largest_input = 0;  // elements of the largest input that is no parameter
  double input_sum = 0;      // of these inputs, over all operators of the kind
  double output_sum = 0;
  double flops = 0;  // of a forward pass; a multiply-add is two
};

struct ModelCard {
  std::string producer;
  int64_t opset = 0;
  uint32_t batch = 1;
  double input_elements = 0;  // of all inputs of the model
  std::map<std::string, OperatorUse> operators;
  double parameters = 0;
  double parameter_bytes = 0;
  double activation_bytes = 0;  // all outputs of operators together
  double traffic_bytes = 0;     // inputs and outputs of all operators, parameters included
  double flops = 0;
  uint64_t depth = 0;  // operators on the longest path
  std::map<std::string, uint64_t> unknown_operators;
  uint64_t unknown_shapes = 0;       // outputs whose size nobody could tell; they count as 0
  std::vector<std::string> guessed;  // dimensions that are not in the file

  bool uncertain() const {
    return !unknown_operators.empty() || unknown_shapes > 0 || !guessed.empty();
  }
};

// The published kind of an ONNX operator: "Conv" is "Conv2D", "Gemm" "MatMul"; "" for an operator
// that nobody knows. docs/sharing.md has the table.
std::string_view operator_kind(std::string_view onnx_operator);

// As docs/model-card.schema.json describes it.
nlohmann::ordered_json card_json(const ModelCard& card);

}  // namespace tierpilot::sharing
