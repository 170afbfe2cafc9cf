#include "rpc/tls/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <boost/asio/ssl/context.hpp>
#include <utility>

#include "base/log.h"
#include "rpc/tls/tls_files.h"

namespace tierpilot {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

using Certificates = std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)>;

void free_certificates(STACK_OF(X509) * all) {
  sk_X509_pop_free(all, X509_free);
}

Status loaded(const char* what, const std::string& path, const error_code& error) {
  if (!error) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("TLS {} '{}' cannot be used: {}", what, path, error.message()));
}

// A list that is out of date says who was revoked until then. Its end must not end the cluster,
// all tasks with it: who is late with a list is warned when it is read.
int tolerate_old_lists(int good, X509_STORE_CTX* check) {
  const int error = X509_STORE_CTX_get_error(check);
  if (good || (error != X509_V_ERR_CRL_HAS_EXPIRED && error != X509_V_ERR_CRL_NOT_YET_VALID))
    return good;
  X509_STORE_CTX_set_error(check, X509_V_OK);
  return 1;
}

Status add_lists(SSL_CTX* context, const std::vector<Crl>& lists) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const auto& list : lists)
    if (X509_STORE_add_crl(store, list.get()) != 1)
      return fail(ErrorCode::kInvalid, "a revocation list cannot be used twice");
  if (!lists.empty())
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return {};
}

Result<TlsContext> make_context(TlsSide side, const TlsFiles& files, const TlsTexts& texts,
                                const std::vector<Crl>& lists) {
  auto context = std::make_shared<ssl::context>(
      side == TlsSide::kServer ? ssl::context::tls_server : ssl::context::tls_client);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
  // Connections live long: no resumption, so no tickets that would carry a client's identity on.
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);

  const auto buffer = [](const std::string& text) { return boost::asio::buffer(text); };
  error_code error;
  context->add_certificate_authority(buffer(texts.ca), error);
  if (auto status = loaded("authority", files.ca, error); !status)
    return tl::unexpected(status.error());
  context->use_certificate_chain(buffer(texts.certificate), error);
  if (auto status = loaded("certificate", files.certificate, error); !status)
    return tl::unexpected(status.error());
  // Also refuses a key that does not belong to the certificate.
  context->use_private_key(buffer(texts.key.text), ssl::context::pem, error);
  if (auto status = loaded("key", files.key, error); !status) return tl::unexpected(status.error());
  if (auto status = add_lists(native, lists); !status) return tl::unexpected(status.error());
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, tolerate_old_lists);
  return context;
}

// Why this certificate is not trusted; empty: it is.
std::string distrust(SSL_CTX* context, X509* certificate, STACK_OF(X509) * chain) {
  const std::unique_ptr<X509_STORE_CTX, decltype(&::X509_STORE_CTX_free)> check(
      X509_STORE_CTX_new(), &::X509_STORE_CTX_free);
  if (!check ||
      X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), certificate, chain) != 1)
    return "it cannot be checked";
  X509_STORE_CTX_set_verify_cb(check.get(), tolerate_old_lists);
  if (X509_verify_cert(check.get()) == 1) return {};
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
}

}  // namespace

struct TlsIdentity::Contents {
  TlsContext server, client;

  static Result<std::unique_ptr<Contents>> read(const TlsFiles& files) {
    const auto texts = TlsTexts::read(files);
    if (!texts) return tl::unexpected(texts.error());
    const auto lists = read_lists(files, *texts);
    if (!lists) return tl::unexpected(lists.error());
    auto server = make_context(TlsSide::kServer, files, *texts, *lists);
    if (!server) return tl::unexpected(server.error());
    auto client = make_context(TlsSide::kClient, files, *texts, *lists);
    if (!client) return tl::unexpected(client.error());
    SSL_CTX* context = (*server)->native_handle();
    if (const auto why = distrust(context, SSL_CTX_get0_certificate(context), nullptr);
        !why.empty())
      spdlog::error("TLS certificate '{}' will be refused by others: {}", files.certificate, why);
    return std::make_unique<Contents>(Contents{std::move(*server), std::move(*client)});
  }
};

struct TlsIdentity::Connection {
  std::unique_ptr<X509, decltype(&::X509_free)> certificate;
  Certificates chain;
  Close close;
};

TlsIdentity::TlsIdentity(TlsFiles files) : files_(std::move(files)) {}
TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(TlsFiles files) {
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity(std::move(files)));
  identity->read_ = identity->seen_ = identity->look();
  auto contents = Contents::read(identity->files_);
  if (!contents) return tl::unexpected(contents.error());
  identity->contents_ = std::move(*contents);
  return identity;
}

const TlsContext& TlsIdentity::context(TlsSide side) const {
  return side == TlsSide::kServer ? contents_->server : contents_->client;
}

Status TlsIdentity::reload() {
  read_ = seen_ = look();
  auto contents = Contents::read(files_);
  if (!contents) return tl::unexpected(contents.error());
  contents_ = std::move(*contents);
  ++generation_;
  close_distrusted();
  return {};
}

void TlsIdentity::close_distrusted() {
  SSL_CTX* context = contents_->server->native_handle();
  // Closing one may open another.
  std::vector<std::pair<Close, std::string>> ending;
  for (auto& connection : connections_)
    if (auto why = distrust(context, connection.certificate.get(), connection.chain.get());
        !why.empty())
      ending.emplace_back(std::move(connection.close), std::move(why));
  std::erase_if(connections_, [](const Connection& connection) { return !connection.close; });
  for (const auto& [close, why] : ending)
    close(fmt::format("the peer's certificate is not trusted any more: {}", why));
}

std::string TlsIdentity::distrusts(SSL* connection) const {
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      SSL_get1_peer_certificate(connection), &::X509_free);
  if (!certificate) return "it showed no certificate";
  return distrust(contents_->server->native_handle(), certificate.get(),
                  SSL_get_peer_cert_chain(connection));
}

bool TlsIdentity::settled_change() {
  auto now = look();
  const bool settled = now != read_ && now == seen_;
  seen_ = std::move(now);
  return settled;
}

std::vector<std::string> TlsIdentity::look() const {
  std::vector<std::string> looks;
  for (const auto& path : {files_.ca, files_.certificate, files_.key, files_.crl}) {
    struct stat info {};
    const bool there = stat_tls_file(path, info);
    // Also whose it is and who may read it.
    looks.push_back(there ? fmt::format("{}:{} {} {}.{} {}.{}", info.st_dev, info.st_ino,
                                        info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                                        info.st_ctim.tv_sec, info.st_ctim.tv_nsec)
                          : "");
  }
  return looks;
}

void TlsIdentity::watch(SSL* connection, Close close) {
  constexpr size_t kPruneFrom = 64;
  if (connections_.size() >= std::max(kPruneFrom, 2 * pruned_size_)) {
    std::erase_if(connections_, [](const Connection& known) { return !known.close(""); });
    pruned_size_ = connections_.size();
  }
  STACK_OF(X509)* chain = SSL_get_peer_cert_chain(connection);
  connections_.push_back({{SSL_get1_peer_certificate(connection), &::X509_free},
                          {chain ? X509_chain_up_ref(chain) : nullptr, &free_certificates},
                          std::move(close)});
}

}  // namespace tierpilot
