// The page that Prometheus reads: what it answers, and what hostile readers get.
#include "rpc/metrics_page.h"

#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <thread>

#include "rpc/error.h"
#include "tests/rpc/server_thread.h"
#include "tests/rpc/test_certificates.h"

namespace tierpilot::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// A page on a thread of its own, as its loop must turn while the test reads.
class PageThread {
 public:
  explicit PageThread(const std::string& address, std::optional<TlsFiles> tls = {}) {
    std::promise<MetricsAddress> listening;
    auto served_at = listening.get_future();
    thread_ = std::thread([this, address, tls, &listening] {
      EventLoop loop;
      loop_ = &loop;
      const Tls identity = tls ? value_or_throw(TlsIdentity::load(*tls)) : nullptr;
      auto page = MetricsPage::listen(loop, *MetricsAddress::parse(address), identity, [this] {
        ++rendered_;
        return std::string("up 1\n");
      });
      listening.set_value(page ? (*page)->address() : MetricsAddress{});
      loop.run();
    });
    address_ = served_at.get();
  }
  ~PageThread() {
    loop_.load()->stop();
    thread_.join();
  }
  uint16_t port() const { return address_.port; }
  int rendered() const { return rendered_; }

 private:
  std::atomic<EventLoop*> loop_ = nullptr;
  std::atomic<int> rendered_ = 0;
  MetricsAddress address_;
  std::thread thread_;
};

tcp::socket dial_page(asio::io_context& io, const PageThread& page) {
  tcp::socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), page.port()});
  return socket;
}

template <class Stream>
std::string all_of(Stream& stream) {
  std::string text;
  error_code end;
  asio::read(stream, asio::dynamic_buffer(text), end);
  return text;
}

std::string ask(const PageThread& page, const std::string& request) {
  asio::io_context io;
  auto socket = dial_page(io, page);
  error_code ignored;  // it may hang up before it has read all
  asio::write(socket, asio::buffer(request), ignored);
  return all_of(socket);
}

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

TEST(MetricsAddress, OnlyLoopbackWithoutTls) {
  EXPECT_TRUE(MetricsAddress::parse("http:127.0.0.1:9464"));
  EXPECT_TRUE(MetricsAddress::parse("http:[::1]:0"));
  EXPECT_TRUE(MetricsAddress::parse("tls:0.0.0.0:9464"));
  for (const char* wrong : {"", "9464", "127.0.0.1:9464", "http:0.0.0.0:9464", "http:example:1",
                            "unix:/run/x", "http:127.0.0.1", "http:127.0.0.1:70000"}) {
    const auto parsed = MetricsAddress::parse(wrong);
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_NE(parsed.error().message.find("metrics address '" + std::string(wrong) + "'"),
              std::string::npos)
        << parsed.error().message;
  }
  EXPECT_EQ(MetricsAddress::parse("http:[::1]:7")->to_string(), "http:[::1]:7");
}

TEST(MetricsPage, AnswersGetOfMetricsOnly) {
  const PageThread page("http:127.0.0.1:0");
  const auto good = ask(page, get("/metrics"));
  EXPECT_TRUE(good.starts_with("HTTP/1.1 200")) << good;
  EXPECT_NE(good.find("text/plain; version=0.0.4"), std::string::npos) << good;
  EXPECT_TRUE(good.ends_with("\r\n\r\nup 1\n")) << good;
  EXPECT_TRUE(ask(page, get("/")).starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(page, get("/metrics?part=1")).starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(ask(page, get("/metrics2?")).starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(page, "DELETE /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")
                  .starts_with("HTTP/1.1 405"));
  EXPECT_EQ(page.rendered(), 2);
}

TEST(MetricsPage, OneConnectionMayAskAgain) {
  const PageThread page("http:127.0.0.1:0");
  const auto two = ask(page, "GET /metrics HTTP/1.1\r\n\r\n" + get("/metrics"));
  EXPECT_EQ(page.rendered(), 2) << two;
}

TEST(MetricsPage, GarbageAndOversizedRequestsAreHungUpOn) {
  const PageThread page("http:127.0.0.1:0");
  EXPECT_EQ(ask(page, std::string(64, '\0') + "\r\n\r\n"), "");
  EXPECT_EQ(ask(page, "GET /metrics HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n"), "");
  EXPECT_EQ(ask(page, "POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n"), "");
  EXPECT_TRUE(ask(page, get("/metrics")).starts_with("HTTP/1.1 200"));
}

TEST(MetricsPage, OneTooManyIsHungUpOnAndARoomIsFreeAgainAfterwards) {
  const PageThread page("http:127.0.0.1:0");
  {
    asio::io_context io;
    std::vector<tcp::socket> silent;
    for (int i = 0; i < 16; ++i) {
      silent.push_back(dial_page(io, page));
      // One answer each, so that all of them are known to be open.
      asio::write(silent.back(), asio::buffer(std::string("GET /metrics HTTP/1.1\r\n\r\n")));
      std::string answer;
      asio::read(silent.back(), asio::dynamic_buffer(answer), asio::transfer_at_least(16));
    }
    EXPECT_EQ(ask(page, get("/metrics")), "");
  }
  for (int tries = 0; tries < 1000; ++tries)
    if (ask(page, get("/metrics")).starts_with("HTTP/1.1 200")) return;
  FAIL() << "the page never came back";
}

TEST(MetricsPage, OverTlsOnlyWithACertificateOfTheAuthority) {
  const TemporaryFolder folder;
  const TestAuthority authority(folder.path(), "cluster");
  const PageThread page("tls:127.0.0.1:0", authority.issue("coordinator", "IP:127.0.0.1"));
  EXPECT_EQ(ask(page, get("/metrics")).find("up 1"), std::string::npos);

  const auto read_as = [&](const std::optional<TlsFiles>& files) {
    asio::io_context io;
    asio::ssl::context context(asio::ssl::context::tls_client);
    if (files) {
      context.use_certificate_chain_file(files->certificate);
      context.use_private_key_file(files->key, asio::ssl::context::pem);
    }
    asio::ssl::stream<tcp::socket> stream(dial_page(io, page), context);
    error_code error;
    stream.handshake(asio::ssl::stream_base::client, error);
    if (!error) asio::write(stream, asio::buffer(get("/metrics")), error);
    return all_of(stream);
  };
  EXPECT_TRUE(read_as(authority.issue("prometheus", "IP:127.0.0.1")).ends_with("up 1\n"));
  EXPECT_EQ(read_as(std::nullopt), "");
  EXPECT_EQ(read_as(TestAuthority(folder.path(), "stranger").issue("x", "IP:127.0.0.1")), "");
  EXPECT_EQ(page.rendered(), 1);
}

TEST(MetricsPage, AnAddressThatIsTakenIsSaid) {
  const PageThread page("http:127.0.0.1:0");
  EventLoop loop;
  const auto taken = MetricsPage::listen(loop, {false, "127.0.0.1", page.port()}, {},
                                         [] { return std::string(); });
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("Address already in use"), std::string::npos)
      << taken.error().message;
}

}  // namespace
}  // namespace tierpilot::test
