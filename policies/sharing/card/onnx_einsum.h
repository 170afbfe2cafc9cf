// Floating point operations of an Einsum.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "policies/sharing/card/onnx_values.h"

namespace tierpilot::sharing {

// Of two operands or more a multiply-add for each combination of all labels, of one an addition
// where labels are summed. Nothing where the equation cannot be read, or is not one of these
// operands.
std::optional<double> einsum_flops(std::string_view equation,
                                   const std::vector<const Value*>& operands);

}  // namespace tierpilot::sharing
