// Every placement policy there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/result.h"
#include "policies/placement/module.h"

namespace tierpilot {

// Decides where nobody says who does.
inline constexpr const char* kDefaultPolicy = "dqn";

// With default settings; what learns is the caller's own.
PlacementModules placement_modules();
// With the settings of the sections that have their names. `installed`: the file of this name, if
// it is there, else "".
PlacementModules read_placement_modules(
    ConfigReader& reader,
    const std::function<std::filesystem::path(const std::string& file)>& installed);
// One that needs no weights; kNotFound lists the names there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, uint64_t seed = 1);

}  // namespace tierpilot
