// Logging: spdlog, to stderr; under systemd the journal adds time and unit, so the prefix shrinks.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/result.h"

namespace tierpilot {

// `level` is trace, debug, info, warning, error or critical.
Status start_log(const std::string& program, const std::string& level);

}  // namespace tierpilot
