// TraceOptions from a file; docs/reference/traces.md has an example.
#pragma once

#include "base/config.h"
#include "policies/sim/trace/trace.h"

namespace tierpilot::sim {

// Sections [trace] and [datasets]; what is not there keeps its default. What is wrong is told by
// the reader's finish(), which is left to the caller: the file may have more sections.
TraceOptions read_trace_options(ConfigReader& reader);

}  // namespace tierpilot::sim
