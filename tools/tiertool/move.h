// The verbs of "move" that are files of their own. Internal.
#pragma once

#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {

void add_move_run(CLI::App& move, Context& context);

}  // namespace tierpilot::tiertool
