// Removes folders of hostile programs: as deep, wide and closed as they like.
#pragma once

#include <filesystem>
#include <functional>

namespace tierpilot {

// With all that is in it, through no link, whatever somebody does there meanwhile. Folders of this
// process's user that are closed to it are opened. `goes_on` is asked before each entry. The first
// error (an errno) of what is left; 0: none.
int remove_tree(const std::filesystem::path& top, const std::function<bool()>& goes_on);

}  // namespace tierpilot
