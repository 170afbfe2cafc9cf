#include "rpc/metrics_page.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <utility>

#include "base/log.h"
#include "rpc/address.h"
#include "rpc/log_limiter.h"

namespace tierpilot {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kMaxReaders = 16;
constexpr uint32_t kHeaderBytes = 8 * 1024;
constexpr std::chrono::seconds kPatience{10};     // for a request, an answer or a handshake
constexpr std::chrono::seconds kIdle{180};        // between two readings of one connection
constexpr std::chrono::milliseconds kPause{100};  // when no connection can be accepted

using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;
using Answer = http::response<http::string_body>;

// What readers share; it outlives the page as long as one of them is being served.
struct Shared {
  MetricsPage::Render render;  // empty once the page is gone
  Tls tls;
  size_t readers = 0;
  LogLimiter limiter;
};

uint64_t generation_of(const Shared& shared) {
  return shared.tls ? shared.tls->generation() : 0;
}

Answer answer_to(const http::request<http::empty_body>& request, const Shared& shared) {
  Answer answer{http::status::ok, request.version()};
  answer.keep_alive(request.keep_alive());
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  if (request.target().substr(0, request.target().find('?')) != "/metrics") {
    answer.result(http::status::not_found);
    answer.body() = "the figures are at /metrics\n";
  } else if (request.method() != http::verb::get && request.method() != http::verb::head) {
    answer.result(http::status::method_not_allowed);
    answer.set(http::field::allow, "GET, HEAD");
    answer.body() = "use GET\n";
  } else {
    answer.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    answer.body() = shared.render();
  }
  answer.prepare_payload();
  if (request.method() == http::verb::head) answer.body().clear();
  return answer;
}

// One connection. Its handlers hold it; it ends when none is left.
template <class Stream>
class Reader : public std::enable_shared_from_this<Reader<Stream>> {
 public:
  Reader(Stream stream, std::shared_ptr<Shared> shared)
      : stream_(std::move(stream)), shared_(std::move(shared)) {
    ++shared_->readers;
  }
  ~Reader() { --shared_->readers; }

  void start() {
    if constexpr (std::is_same_v<Stream, Secure>) {
      beast::get_lowest_layer(stream_).expires_after(kPatience);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (error) return self->refused(error);
                                self->read(kPatience);
                              });
    } else {
      read(kPatience);
    }
  }

 private:
  void refused(error_code error) {
    uint64_t left_out = 0;
    if (!shared_->limiter.admit(left_out)) return;
    spdlog::warn("metrics: a reader was refused: {}{}", error.message(),
                 left_out ? fmt::format(" ({} more such lines left out)", left_out) : "");
  }

  void read(std::chrono::seconds patience) {
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(0);
    beast::get_lowest_layer(stream_).expires_after(patience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, size_t) {
                       if (!error && self->shared_->render) self->write();
                     });
  }

  void write() {
    answer_ = answer_to(parser_->get(), *shared_);
    // By what was read since, he may not be trusted any more.
    if (generation_ != generation_of(*shared_)) answer_.keep_alive(false);
    beast::get_lowest_layer(stream_).expires_after(kPatience);
    http::async_write(stream_, answer_,
                      [self = this->shared_from_this()](error_code error, size_t) {
                        if (!error && self->answer_.keep_alive()) self->read(kIdle);
                      });
  }

  Stream stream_;
  std::shared_ptr<Shared> shared_;
  const uint64_t generation_ = generation_of(*shared_);
  beast::flat_buffer buffer_{kHeaderBytes + 1024};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Answer answer_;
};

bool is_loopback(const std::string& host) {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

}  // namespace

struct MetricsPage::Listener : std::enable_shared_from_this<Listener> {
  Listener(asio::io_context& io, MetricsAddress address, std::shared_ptr<Shared> shared)
      : io(io), acceptor(io), pause(io), address(std::move(address)), shared(std::move(shared)) {}

  Status open() {
    error_code error;
    tcp::resolver resolver(io);
    const auto found =
        resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
    const tcp::endpoint endpoint = error ? tcp::endpoint{} : found.begin()->endpoint();
    if (!error) acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return fail(ErrorCode::kUnreachable, fmt::format("cannot serve metrics at {}: {}",
                                                       address.to_string(), error.message()));
    address.port = acceptor.local_endpoint().port();
    return {};
  }

  void accept() {
    acceptor.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
      if (!self->acceptor.is_open()) return;
      if (error) return self->accept_later();
      // One too many is closed at once: Prometheus opens one, a scan many.
      if (self->shared->readers < kMaxReaders) self->serve(std::move(socket));
      self->accept();
    });
  }

  // Out of descriptors: the connection stays in the backlog, and asking at once would spin.
  void accept_later() {
    pause.expires_after(kPause);
    pause.async_wait([self = shared_from_this()](error_code error) {
      if (!error && self->acceptor.is_open()) self->accept();
    });
  }

  void serve(tcp::socket socket) {
    Plain stream(std::move(socket));
    if (shared->tls)
      std::make_shared<Reader<Secure>>(
          Secure(std::move(stream), *shared->tls->context(TlsSide::kServer)), shared)
          ->start();
    else
      std::make_shared<Reader<Plain>>(std::move(stream), shared)->start();
  }

  asio::io_context& io;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  MetricsAddress address;
  std::shared_ptr<Shared> shared;
};

Result<MetricsAddress> MetricsAddress::parse(std::string_view text) {
  const bool plain = text.starts_with("http:");
  auto parsed = Address::parse(plain ? "tls:" + std::string(text.substr(5)) : std::string(text));
  if (!parsed || parsed->kind != Address::Kind::kTls)
    return fail(
        ErrorCode::kInvalid,
        fmt::format("metrics address '{}': expected http:127.0.0.1:port or tls:host:port", text));
  if (plain && !is_loopback(parsed->host))
    return fail(ErrorCode::kInvalid,
                fmt::format("metrics address '{}': without TLS only a loopback address such as "
                            "127.0.0.1 is served; use tls:{}:{}",
                            text, parsed->host, parsed->port));
  return MetricsAddress{!plain, parsed->host, parsed->port};
}

std::string MetricsAddress::to_string() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("{}:{}{}{}:{}", tls ? "tls" : "http", bracketed ? "[" : "", host,
                     bracketed ? "]" : "", port);
}

Result<std::unique_ptr<MetricsPage>> MetricsPage::listen(EventLoop& loop,
                                                         const MetricsAddress& address,
                                                         const Tls& tls, Render render) {
  auto shared = std::make_shared<Shared>();
  shared->render = std::move(render);
  if (address.tls) {
    if (!tls)
      return fail(ErrorCode::kInvalid,
                  fmt::format("cannot serve metrics at {}: certificate, key and authority are "
                              "needed ([tls])",
                              address.to_string()));
    shared->tls = tls;
  }
  auto listener = std::make_shared<Listener>(loop.io(), address, std::move(shared));
  if (auto opened = listener->open(); !opened) return tl::unexpected(opened.error());
  listener->accept();
  return std::unique_ptr<MetricsPage>(new MetricsPage(std::move(listener)));
}

MetricsPage::MetricsPage(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}

MetricsPage::~MetricsPage() {
  listener_->shared->render = nullptr;
  error_code ignored;
  listener_->acceptor.close(ignored);
  listener_->pause.cancel();
}

MetricsAddress MetricsPage::address() const {
  return listener_->address;
}

}  // namespace tierpilot
