// Published measurements, where they are beside the project.
#pragma once

#include <filesystem>

namespace tierpilot::sharing {

inline const std::filesystem::path kTraces = TRACES;

}  // namespace tierpilot::sharing
