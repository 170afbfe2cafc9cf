#include "rpc/address.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>

namespace tierpilot {
namespace {

constexpr size_t kMaxPathBytes = sizeof(sockaddr_un{}.sun_path) - 1;
constexpr size_t kMaxHostBytes = 253;  // RFC 1035

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

Result<Address> parse_unix(std::string_view path) {
  if (path.empty() || path.front() != '/')
    return fail(ErrorCode::kInvalid,
                fmt::format("address 'unix:{}': the socket's path must be absolute", path));
  if (path.size() > kMaxPathBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("address 'unix:{}': the path has {} bytes, the kernel allows {}", path,
                            path.size(), kMaxPathBytes));
  if (path.find('\0') != std::string_view::npos)
    return fail(ErrorCode::kInvalid, "address 'unix:...': the path contains a zero byte");
  return Address{Address::Kind::kUnix, std::string(path), {}, 0};
}

Result<Address> parse_tls(std::string_view rest) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::kInvalid,
                fmt::format("address 'tls:{}': {} (expected tls:host:port)", rest, why));
  };
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return bad("the port is missing");
  std::string_view host = rest.substr(0, colon);
  const std::string_view digits = rest.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return bad("write an IPv6 address in brackets");
  if (host.empty()) return bad("the host is missing");
  if (host.size() > kMaxHostBytes || !is_printable(host)) return bad("the host is not a name");
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return bad("the port is not a number from 0 to 65535");
  return Address{Address::Kind::kTls, {}, std::string(host), port};
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with("unix:")) return parse_unix(text.substr(5));
  if (text.starts_with("tls:")) return parse_tls(text.substr(4));
  return fail(ErrorCode::kInvalid,
              fmt::format("address '{}': expected unix:/path/to.sock or tls:host:port", text));
}

std::string Address::to_string() const {
  if (kind == Kind::kUnix) return "unix:" + path;
  const bool bracketed = host.find(':') != std::string::npos;
  return bracketed ? fmt::format("tls:[{}]:{}", host, port) : fmt::format("tls:{}:{}", host, port);
}

}  // namespace tierpilot
