#include "base/result.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tierpilot {
namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 9> kNames{{
    {ErrorCode::kInvalid, "invalid"},
    {ErrorCode::kNotFound, "not_found"},
    {ErrorCode::kConflict, "conflict"},
    {ErrorCode::kUnavailable, "unavailable"},
    {ErrorCode::kUnreachable, "unreachable"},
    {ErrorCode::kDenied, "denied"},
    {ErrorCode::kExhausted, "exhausted"},
    {ErrorCode::kIo, "io"},
    {ErrorCode::kTimeout, "timeout"},
}};

ErrorCode code_for_errno(int err) {
  switch (err) {
    case ENOENT:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::kDenied;
    case ENOSPC:
    case ENOMEM:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
      return ErrorCode::kExhausted;
    case EINVAL:
      return ErrorCode::kInvalid;
    case EEXIST:
    case EBUSY:
      return ErrorCode::kConflict;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnavailable;
    case ECONNREFUSED:
    case EHOSTUNREACH:
      return ErrorCode::kUnreachable;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

std::string_view error_code_name(ErrorCode code) {
  for (const auto& [value, name] : kNames)
    if (value == code) return name;
  return "io";
}

ErrorCode error_code_from_name(std::string_view name) {
  for (const auto& [value, text] : kNames)
    if (text == name) return value;
  return ErrorCode::kIo;
}

tl::unexpected<Error> fail_errno(int err, std::string_view what) {
  // strerror_l-free: GNU strerror is thread-safe for known errors since glibc 2.32.
  return fail(code_for_errno(err), std::string(what) + ": " + std::strerror(err));
}

}  // namespace tierpilot
