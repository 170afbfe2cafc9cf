// tiertool swap record: one training step of a program, as an operator log that swap replay reads.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {

// Adds the verb to `swap`.
void add_swap_record(CLI::App& swap, Context& context);

}  // namespace tierpilot::tiertool
