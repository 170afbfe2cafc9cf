// What demonstrations of training jobs have in common: their script, and folders that do not
// outlive them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace tierpilot::demo {

struct TrainingScript {
  std::string file;
  std::string python_path;  // where the module tierpilot is
};

// Makes its paths absolute, as jobs run in folders of their own. kNotFound: it, or PyTorch, is not
// there.
Status prepare(TrainingScript& script);

using StageWork = std::function<int(const std::filesystem::path& folder,
                                    const std::filesystem::path& fast_folder)>;
// Runs it in a guarded process; its exit code, or 128 and the signal that ended it.
Result<int> run_on_stage(const StageWork& work);

}  // namespace tierpilot::demo
