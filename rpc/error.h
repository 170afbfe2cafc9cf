// Errors that cross the wire: an Error thrown by a method arrives as the same Error at its caller.
#pragma once

#include <kj/exception.h>

#include <utility>

#include "base/result.h"

namespace tierpilot {

// Carries code and message in the exception's description, the only text that Cap'n Proto sends.
kj::Exception to_exception(const Error& error);

// Ours: code and message as thrown, over any number of hops. Else: DISCONNECTED is kUnreachable,
// UNIMPLEMENTED (an older peer) is kUnavailable, everything else kIo.
// Never use kj::str(exception) for a message: it runs addr2line to print a stack.
Error to_error(const kj::Exception& exception);

// The value, or the error thrown as to_exception would: for the body of an RPC method.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) kj::throwFatalException(to_exception(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace tierpilot
