// The one error type of the project: Result<T> for what can go wrong, exceptions only for bugs.
//
// A message names the thing, the place, the cause and, where there is one, what to do:
//   "dataset 'genes': source '/srv/genes.bin' cannot be opened: No such file or directory"
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace tierpilot {

// What kind of failure it was, for exit codes and for callers that decide by it.
enum class ErrorCode {
  kInvalid,      // the request or file is wrong; repeating it cannot help
  kNotFound,     // the named thing does not exist
  kConflict,     // it exists already, or its state forbids the request
  kUnavailable,  // this machine, kernel or peer does not offer it (now)
  kUnreachable,  // nobody answers at the address
  kDenied,       // a privilege is missing
  kExhausted,    // no room: disk, memory, budget, queue
  kIo,           // the operating system failed an operation
  kTimeout,      // a deadline passed
};

std::string_view error_code_name(ErrorCode code);
// The inverse of error_code_name; unknown names give kIo.
ErrorCode error_code_from_name(std::string_view name);

struct Error {
  ErrorCode code;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// `what` + ": " + strerror(err), with a code that fits the errno.
tl::unexpected<Error> fail_errno(int err, std::string_view what);

}  // namespace tierpilot
