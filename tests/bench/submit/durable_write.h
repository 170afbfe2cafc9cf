// The floor of every durable acknowledgement: one small write and an fdatasync.
#pragma once

#include <filesystem>

namespace tierpilot::bench {

// One after the other over `folder`'s file system, as a log with room does: writes of a page with a
// log's frame header, into space that the file has already. Throws std::system_error.
double durable_writes_per_s(const std::filesystem::path& folder, int count);

}  // namespace tierpilot::bench
