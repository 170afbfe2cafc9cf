#include "rpc/transport.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <netinet/tcp.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "rpc/error.h"
#include "rpc/sockets.h"
#include "rpc/stream/asio_types.h"

namespace tierpilot {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int64_t kBacklogRetryMs = 10;

[[noreturn]] void give_up(ErrorCode code, const std::string& what, const std::string& why) {
  kj::throwFatalException(to_exception({code, fmt::format("{}: {}", what, why)}));
}

kj::Promise<Channel> within(EventLoop& loop, const RpcLimits& limits, std::string what,
                            kj::Promise<Channel> channel) {
  const int64_t limit_ms = limits.handshake_timeout_ms;
  return channel.exclusiveJoin(
      loop.after_ms(limit_ms).then([what = std::move(what), limit_ms]() -> Channel {
        give_up(ErrorCode::kTimeout, what, fmt::format("no answer within {} ms", limit_ms));
      }));
}

Peer unix_peer(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  Peer peer{"unix", {}, {}, "unknown", {}, {}};
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
    peer.uid = credentials.uid;
    peer.pid = credentials.pid;
    peer.name = fmt::format("{}{}", kUidPrefix, credentials.uid);
  }
  return peer;
}

std::string common_name(X509* certificate) {
  char name[256] = "";
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                             name, sizeof name);
  return size > 0 ? std::string(name, static_cast<size_t>(size)) : std::string();
}

// Its subjectAltName's; those who dial look at no other name.
std::vector<std::string> host_names(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&::GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      &::GENERAL_NAMES_free);
  std::vector<std::string> hosts;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    hosts.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                       static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
  }
  return hosts;
}

Peer tls_peer(SSL* ssl, std::string address) {
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(SSL_get1_peer_certificate(ssl),
                                                                  &::X509_free);
  Peer peer{"tls", {}, {}, {}, std::move(address), {}};
  if (!certificate) return peer;
  peer.name = common_name(certificate.get());
  peer.hosts = host_names(certificate.get());
  return peer;
}

// OpenSSL's own check, not Asio's callback: only this one says "hostname mismatch".
void expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str())) return;
  X509_VERIFY_PARAM_set1_host(expected, host.c_str(), host.size());
  SSL_set_tlsext_host_name(ssl, host.c_str());
}

std::string handshake_failure(SSL* ssl, error_code error) {
  const long verdict = SSL_get_verify_result(ssl);
  if (verdict == X509_V_OK) return error.message();
  return fmt::format("{}: {}", error.message(), X509_verify_cert_error_string(verdict));
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", host, endpoint.port())
                                    : fmt::format("{}:{}", host, endpoint.port());
}

Channel unix_channel(EventLoop& loop, UniqueFd fd, const RpcLimits& limits) {
  Peer peer = unix_peer(fd.get());
  auto socket = std::make_unique<PlainSocket>(loop.io(), asio::generic::stream_protocol(AF_UNIX, 0),
                                              fd.release());
  return {make_stream(std::move(socket), limits), std::move(peer)};
}

// A machine that vanished without a word must not hold a connection open for hours.
void tune_tcp(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// After a handshake with `used`.
Channel tls_channel(std::unique_ptr<TlsSocket> socket, std::string address, const Tls& tls,
                    const TlsContext& used, const RpcLimits& limits) {
  const bool read_since =
      used != tls->context(TlsSide::kServer) && used != tls->context(TlsSide::kClient);
  const auto refuse = [&](const std::string& why) {
    give_up(ErrorCode::kDenied, "TLS with " + address + " failed", why);
  };
  if (const auto why = read_since ? tls->distrusts(socket->native_handle()) : ""; !why.empty())
    refuse(why);
  Peer peer = tls_peer(socket->native_handle(), address);
  // They all would be one user. A server is known by its host's name.
  if (peer.name.empty() && SSL_is_server(socket->native_handle()))
    refuse("its certificate names nobody (it has no CN): issue one that does");
  // Else whoever has it would count as that account of this machine.
  if (peer.name.starts_with(kUidPrefix))
    refuse(
        fmt::format("its certificate is made out to '{}', which is how accounts of this machine "
                    "are called: issue one with another name",
                    peer.name));
  return {make_stream(std::move(socket), *tls, limits), std::move(peer)};
}

// The steps of one TLS connection. Handlers hold it, so that it outlives a dropped promise.
struct TlsDial {
  TlsDial(EventLoop& loop, const Address& address, const Tls& identity, const RpcLimits& limits)
      : address(address),
        limits(limits),
        what("cannot connect to " + address.to_string()),
        identity(identity),
        context(identity->context(TlsSide::kClient)),
        resolver(loop.io()),
        socket(loop.io()) {}

  kj::Promise<Channel> run(std::shared_ptr<TlsDial> self) {
    return completion_of([&](auto handler) {
             resolver.async_resolve(
                 address.host, std::to_string(address.port), tcp::resolver::numeric_service,
                 [self, handler = std::move(handler)](error_code error,
                                                      tcp::resolver::results_type found) mutable {
                   self->targets = std::move(found);
                   handler(error);
                 });
           })
        .then([self](error_code error) { return self->connect(self, error); })
        .then([self](error_code error) { return self->handshake(self, error); })
        .then([self](error_code error) {
          // No verdict of TLS: who has too many connections ends one without a word.
          if (error && error.category() != asio::error::get_ssl_category())
            give_up(ErrorCode::kUnreachable, self->what,
                    "it ended the connection before it answered: it may be starting, or have as "
                    "many connections as it takes (" +
                        error.message() + ")");
          if (error)
            give_up(ErrorCode::kDenied, self->what,
                    handshake_failure(self->tls->native_handle(), error));
          return tls_channel(std::move(self->tls), text_of(self->remote), self->identity,
                             self->context, self->limits);
        })
        .attach(kj::defer([self] { self->cancel(); }));
  }

  kj::Promise<error_code> connect(const std::shared_ptr<TlsDial>& self, error_code error) {
    if (error) give_up(ErrorCode::kUnreachable, what, error.message());
    return completion_of([&](auto handler) {
      asio::async_connect(socket, targets,
                          [self, handler = std::move(handler)](
                              error_code error, const tcp::endpoint& endpoint) mutable {
                            self->remote = endpoint;
                            handler(error);
                          });
    });
  }

  kj::Promise<error_code> handshake(const std::shared_ptr<TlsDial>& self, error_code error) {
    if (error) give_up(ErrorCode::kUnreachable, what, error.message());
    tune_tcp(socket.native_handle());
    tls = std::make_unique<TlsSocket>(PlainSocket(std::move(socket)), *context);
    expect_host(tls->native_handle(), address.host);
    return completion_of([&](auto handler) {
      tls->async_handshake(
          asio::ssl::stream_base::client,
          [self, handler = std::move(handler)](error_code error) mutable { handler(error); });
    });
  }

  void cancel() {
    error_code ignored;
    resolver.cancel();
    socket.close(ignored);
    if (tls) tls->lowest_layer().close(ignored);
  }

  const Address address;
  const RpcLimits limits;
  const std::string what;
  const Tls identity;
  const TlsContext context;  // the one of now, whatever is read meanwhile
  tcp::resolver resolver;
  tcp::resolver::results_type targets;
  tcp::endpoint remote;
  tcp::socket socket;
  std::unique_ptr<TlsSocket> tls;
};

// Not through Asio: it takes EAGAIN, a full backlog, for a connection that will come to be.
kj::Promise<Channel> dial_unix(EventLoop& loop, const Address& address, const RpcLimits& limits) {
  auto fd = connect_unix(address);
  if (fd) return unix_channel(loop, std::move(*fd), limits);
  if (fd.error().code != ErrorCode::kExhausted) return to_exception(fd.error());
  return loop.after_ms(kBacklogRetryMs).then([&loop, address, limits] {
    return dial_unix(loop, address, limits);
  });
}

struct TlsWelcome {
  std::unique_ptr<TlsSocket> tls;
  Tls identity;
  TlsContext context;
  std::string remote;
};

kj::Promise<Channel> welcome_tls(EventLoop& loop, PlainSocket socket, std::string remote,
                                 const Tls& tls, const RpcLimits& limits) {
  const auto& context = tls->context(TlsSide::kServer);
  auto state = std::make_shared<TlsWelcome>(
      TlsWelcome{std::make_unique<TlsSocket>(std::move(socket), *context), tls, context, remote});
  auto channel =
      completion_of([&](auto handler) {
        state->tls->async_handshake(
            asio::ssl::stream_base::server,
            [state, handler = std::move(handler)](error_code error) mutable { handler(error); });
      })
          .then([state, limits](error_code error) {
            if (error)
              give_up(ErrorCode::kDenied, "TLS with " + state->remote + " failed",
                      handshake_failure(state->tls->native_handle(), error));
            return tls_channel(std::move(state->tls), state->remote, state->identity,
                               state->context, limits);
          })
          .attach(kj::defer([state] {
            error_code ignored;
            if (state->tls) state->tls->lowest_layer().close(ignored);
          }));
  return within(loop, limits, "TLS with " + remote + " failed", kj::mv(channel));
}

}  // namespace

kj::Promise<Channel> dial(EventLoop& loop, const Address& address, const Tls& tls,
                          const RpcLimits& limits) {
  const std::string what = "cannot connect to " + address.to_string();
  if (address.kind == Address::Kind::kUnix)
    return within(loop, limits, what, dial_unix(loop, address, limits));
  if (!tls)
    return to_exception(
        {ErrorCode::kInvalid, what + ": certificate, key and authority are needed"});
  auto steps = std::make_shared<TlsDial>(loop, address, tls, limits);
  return within(loop, limits, what, steps->run(steps));
}

kj::Promise<Channel> welcome(EventLoop& loop, UniqueFd fd, const Tls& tls,
                             const RpcLimits& limits) {
  if (tls == nullptr) return unix_channel(loop, std::move(fd), limits);
  tune_tcp(fd.get());
  tcp::endpoint remote;
  socklen_t size = static_cast<socklen_t>(remote.capacity());
  if (::getpeername(fd.get(), remote.data(), &size) == 0) remote.resize(size);
  PlainSocket socket(loop.io(), asio::generic::stream_protocol(remote.protocol()), fd.release());
  return welcome_tls(loop, std::move(socket), text_of(remote), tls, limits);
}

}  // namespace tierpilot
