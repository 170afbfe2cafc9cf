// Readers of operator logs. They take hostile bytes: what is wrong is refused with place, name and
// cause.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "policies/swap/graph.h"

namespace tierpilot::swap {

// The log of Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021): a JSON object a line.
Result<Graph> read_dtr_log(const std::filesystem::path& path);

// A table of operators with forward and backward time, output, weights and what is kept for the
// backward pass; one graph for each model and micro-batch in it. Rows that follow each other with
// the same `repeat` are a block that occurs so often.
Result<std::vector<Graph>> read_operator_table(const std::filesystem::path& path);

// One recorded step in JSON: bytes of tensors by number, operators with what goes in and out.
Result<Graph> read_step(const std::filesystem::path& path);

}  // namespace tierpilot::swap
