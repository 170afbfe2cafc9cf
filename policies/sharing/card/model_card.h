// What a model is made of, as predictors see it: by operator kind, not by name.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tierpilot::sharing {

inline constexpr uint32_t kMaxBatch = 4'000'000'000;

struct OperatorUse {
  uint64_t count = 0;
  double largest_input = 0;  // elements of the largest input that is no parameter
  double input_sum = 0;      // of these inputs, over all operators of the kind
  double output_sum = 0;
  double parameter_sum = 0;  // elements of inputs that are parameters
  double flops = 0;          // of a forward pass; a multiply-add is two
};

// What is known of the training beside its model.
struct JobCard {
  uint64_t iterations = 0;                      // of the whole job; 0: not told
  std::string optimizer;                        // the class's name, as "Adam"; "SGD+momentum"
  std::optional<double> samples_per_s, load_s;  // of the input pipeline; load_s per iteration
  bool loads_ahead = false;                     // while the model computes
  uint32_t threads = 0;                         // 0: not told

  // Seconds that an iteration's batch takes to load; 0 where nobody has told.
  double loading_s(uint32_t batch) const {
    return load_s ? *load_s : samples_per_s ? batch / *samples_per_s : 0;
  }
};

struct ModelCard {
  std::string producer;
  int64_t opset = 0;
  uint32_t batch = 1;
  double input_elements = 0;  // of all inputs of the model
  std::map<std::string, OperatorUse> operators;
  double parameters = 0;
  double parameter_bytes = 0;
  uint64_t parameter_tensors = 0;
  double activation_bytes = 0;  // all outputs of operators together
  double traffic_bytes = 0;     // inputs and outputs of all operators, parameters included
  double flops = 0;
  uint64_t depth = 0;     // operators on the longest path
  uint64_t launches = 0;  // operators; of a recurrent one those of all its steps
  std::map<std::string, uint64_t> unknown_operators;
  uint64_t unknown_shapes = 0;       // values that nobody could tell the size of; they count as 0
  std::vector<std::string> guessed;  // dimensions that are not in the file
  std::optional<JobCard> job;

  bool uncertain() const {
    return !unknown_operators.empty() || unknown_shapes > 0 || !guessed.empty();
  }
};

// The published kind of an ONNX operator: "Conv" is "Conv2D", "Gemm" "MatMul"; "" for an operator
// that nobody knows. docs/reference/operator-kinds.md has the table.
std::string_view operator_kind(std::string_view onnx_operator);

// All kinds there are, sorted; "Unknown" and "BiasAdd" are among them.
std::span<const std::string_view> operator_kinds();

// As docs/model-card.schema.json describes it.
nlohmann::ordered_json card_json(const ModelCard& card);

}  // namespace tierpilot::sharing
