#include "rpc/error.h"

#include <fmt/format.h>
#include <kj/string.h>

#include <string>
#include <string_view>

namespace tierpilot {
namespace {

// "[tierpilot not_found] dataset 'genes' does not exist"; KJ puts "remote exception: " before it.
constexpr std::string_view kMarker = "[tierpilot ";
constexpr std::string_view kMarkerEnd = "] ";

kj::Exception::Type type_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnreachable:
      return kj::Exception::Type::DISCONNECTED;
    case ErrorCode::kExhausted:
    case ErrorCode::kTimeout:
      return kj::Exception::Type::OVERLOADED;
    default:
      return kj::Exception::Type::FAILED;
  }
}

ErrorCode code_of(kj::Exception::Type type) {
  switch (type) {
    case kj::Exception::Type::DISCONNECTED:
      return ErrorCode::kUnreachable;
    case kj::Exception::Type::UNIMPLEMENTED:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

kj::Exception to_exception(const Error& error) {
  const std::string text =
      fmt::format("{}{}{}{}", kMarker, error_code_name(error.code), kMarkerEnd, error.message);
  return {type_of(error.code), __FILE__, __LINE__, kj::heapString(text.data(), text.size())};
}

Error to_error(const kj::Exception& exception) {
  const std::string_view text(exception.getDescription().begin(),
                              exception.getDescription().size());
  const size_t marker = text.find(kMarker);
  if (marker != std::string_view::npos) {
    const std::string_view rest = text.substr(marker + kMarker.size());
    const size_t end = rest.find(kMarkerEnd);
    if (end != std::string_view::npos) {
      const ErrorCode code = error_code_from_name(rest.substr(0, end));
      // A foreign text that only looks like ours names no known code.
      if (error_code_name(code) == rest.substr(0, end))
        return {code, std::string(rest.substr(end + kMarkerEnd.size()))};
    }
  }
  return {code_of(exception.getType()), std::string(text)};
}

}  // namespace tierpilot
