#include "rpc/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>

namespace tierpilot {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Status loaded(const char* what, const std::string& path, const error_code& error) {
  if (!error) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("TLS {} '{}' cannot be used: {}", what, path, error.message()));
}

}  // namespace

Result<TlsContext> make_tls_context(TlsSide side, const TlsFiles& files) {
  auto context = std::make_shared<ssl::context>(
      side == TlsSide::kServer ? ssl::context::tls_server : ssl::context::tls_client);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
  // Connections live long: no resumption, so no tickets that would carry a client's identity on.
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);

  error_code error;
  context->load_verify_file(files.ca, error);
  if (auto status = loaded("authority", files.ca, error); !status)
    return tl::unexpected(status.error());
  context->use_certificate_chain_file(files.certificate, error);
  if (auto status = loaded("certificate", files.certificate, error); !status)
    return tl::unexpected(status.error());
  // Also refuses a key that does not belong to the certificate.
  context->use_private_key_file(files.key, ssl::context::pem, error);
  if (auto status = loaded("key", files.key, error); !status) return tl::unexpected(status.error());
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return context;
}

}  // namespace tierpilot
