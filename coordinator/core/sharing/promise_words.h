// What became of a task's promise.
#pragma once

#include <string>

#include "coordinator/model.h"

namespace tierpilot {

// "made", "on trial", "made on trial", "not made: ...", "made; late: ..."; of a task that has ended
// "kept: ...", "broken: ..." or "void: ...", with by how much. Empty: it asked for none.
std::string promise_words(const Task& task, int64_t now_ms);

}  // namespace tierpilot
