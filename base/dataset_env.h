// How a task finds its datasets: TIERPILOT_DATASET_<NAME> holds the path.
#pragma once

#include <string>
#include <string_view>

namespace tierpilot {

inline constexpr std::string_view kDatasetEnvPrefix = "TIERPILOT_DATASET_";

// "genes-2024.bin" -> "TIERPILOT_DATASET_GENES_2024_BIN": upper case ASCII, every byte that is not
// an ASCII letter or digit becomes '_'. Not injective: "a-b" and "a_b" meet.
std::string dataset_env_name(std::string_view dataset);

}  // namespace tierpilot
