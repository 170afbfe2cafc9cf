#include "rpc/stream/stream_errors.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>

#include <string_view>
#include <utility>

#include "rpc/error.h"
#include "rpc/stream/asio_types.h"

namespace tierpilot {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Where the peer's alert says so, what is wrong with this program's own certificate.
std::string_view complaint_of(error_code alert) {
  switch (ERR_GET_REASON(static_cast<unsigned long>(alert.value()))) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "this program's certificate has expired: issue a new one; ";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      return "this program's certificate was revoked: issue a new one; ";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "this program's certificate is of an authority that the other side does not know; ";
    default:
      return "";
  }
}

}  // namespace

kj::Exception lost(std::string why) {
  return to_exception({ErrorCode::kUnreachable, std::move(why)});
}

// In TLS 1.3 a refused client learns of it here: by an alert, after its own handshake has ended.
kj::Exception lost(error_code error) {
  if (error.category() != asio::error::get_ssl_category())
    return lost("connection lost: " + error.message());
  return to_exception({ErrorCode::kDenied, fmt::format("connection refused: {}{}",
                                                       complaint_of(error), error.message())});
}

bool is_end_of_stream(error_code error) {
  // A peer that ends TLS without close_notify: frames delimit themselves, so nothing can be cut off
  // unnoticed, and a shutdown of the writing side does the same.
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated;
}

}  // namespace tierpilot
