// The file in which a session's plans wait for the next run.
#pragma once

#include <filesystem>

#include "swap/session.h"

namespace tierpilot::swap {

// Starts the session from the file's plans. What cannot be used is refused whole, and the error
// says why; that there is no file is none.
Status restore_plans(Session& session, const std::filesystem::path& file);
// Replaces the file whole, by what it holds and what the session learned (merged_plans.h): a crash
// leaves the old one or the new one. Of a link it is what that names. What is no plain file, or no
// plan file, is left as it is, and the error says so.
Status keep_plans(Session& session, const std::filesystem::path& file);

}  // namespace tierpilot::swap
