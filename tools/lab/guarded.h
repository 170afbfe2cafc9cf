// Work on a file that may be hostile, by a library that is not ours: in a child with limits.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace tierpilot::lab {

// What `work` says, from a child process that may map 8 GiB more than now and use a minute of CPU
// time. kInvalid names `subject` where the child ended without an answer, kExhausted where it had
// too little memory.
Result<std::string> in_guarded_child(const std::string& subject,
                                     const std::function<Result<std::string>()>& work);

}  // namespace tierpilot::lab
