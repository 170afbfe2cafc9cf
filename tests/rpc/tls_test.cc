// Mutual TLS: who gets in, and what those are told who do not.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "tests/rpc/raw_peer.h"
#include "tests/rpc/server_thread.h"
#include "tests/rpc/test_certificates.h"

namespace tierpilot::test {
namespace {

constexpr const char* kNames = "DNS:localhost,IP:127.0.0.1";

class Tls : public testing::Test {
 protected:
  Tls() { limits_.handshake_timeout_ms = 5'000; }

  ServerThread& serve(const TlsFiles& files) {
    server_.emplace(*Address::parse("tls:127.0.0.1:0"), files, limits_);
    return *server_;
  }
  Address named(const std::string& host) {
    return {Address::Kind::kTls, {}, host, server_->address().port};
  }
  Error refusal(const Address& address, const TlsFiles& files) {
    auto error = error_of([&] { connect(loop_, address, files, limits_); });
    return error.value_or(Error{ErrorCode::kInvalid, "was not refused"});
  }

  TemporaryFolder folder_;
  TestAuthority authority_{folder_.path(), "cluster"};
  TestAuthority stranger_{folder_.path(), "stranger"};
  TlsFiles server_files_ = authority_.issue("coordinator", kNames);
  TlsFiles client_files_ = authority_.issue("node-7", kNames);
  RpcLimits limits_;
  EventLoop loop_;
  std::optional<ServerThread> server_;
};

TEST_F(Tls, GoodPairTalksAndKnowsEachOther) {
  serve(server_files_);
  EXPECT_NE(server_->address().port, 0);
  for (const char* host : {"localhost", "127.0.0.1"}) {
    auto connection = connect(loop_, named(host), client_files_);
    EXPECT_EQ(connection->peer().name, "coordinator");
    EXPECT_EQ(connection->peer().hosts, std::vector<std::string>{"localhost"});
    auto peer = echo_of(*connection).peerRequest().send().wait(loop_.wait_scope());
    EXPECT_EQ(std::string(peer.getTransport().cStr()), "tls");
    EXPECT_EQ(std::string(peer.getName().cStr()), "node-7");
    EXPECT_EQ(peer.getUid(), -1);
    EXPECT_EQ(echo(loop_, echo_of(*connection), host), host);
  }
}

TEST_F(Tls, LargePayloadsAndManyCalls) {
  serve(server_files_);
  auto connection = connect(loop_, named("localhost"), client_files_);
  auto client = echo_of(*connection);
  auto request = client.blobRequest();
  auto data = request.initData(3 << 20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<kj::byte>(i * 13 >> 5);
  const std::vector<kj::byte> sent(data.begin(), data.end());
  auto response = request.send().wait(loop_.wait_scope());
  ASSERT_EQ(response.getData().size(), sent.size());
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), response.getData().begin()));

  auto calls = kj::heapArrayBuilder<kj::Promise<void>>(2'000);
  for (int i = 0; i < 2'000; ++i) calls.add(client.echoRequest().send().ignoreResult());
  kj::joinPromises(calls.finish()).wait(loop_.wait_scope());
}

TEST_F(Tls, ServerOfAnotherAuthorityIsRefused) {
  serve(stranger_.issue("impostor", kNames));
  const Error error = refusal(named("localhost"), client_files_);
  EXPECT_EQ(error.code, ErrorCode::kDenied) << error.message;
  EXPECT_NE(error.message.find("certificate verify failed"), std::string::npos) << error.message;
}

TEST_F(Tls, ClientOfAnotherAuthorityIsRefused) {
  serve(server_files_);
  TlsFiles files = stranger_.issue("intruder", kNames);
  files.ca = client_files_.ca;  // it does trust the server
  const Error error = refusal(named("localhost"), files);
  EXPECT_EQ(error.code, ErrorCode::kDenied) << error.message;
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(Tls, WrongHostNameIsRefused) {
  serve(authority_.issue("elsewhere", "DNS:elsewhere.example,IP:10.1.2.3"));
  for (const auto& [host, why] : {std::pair{"localhost", "hostname mismatch"},
                                  std::pair{"127.0.0.1", "IP address mismatch"}}) {
    const Error error = refusal(named(host), client_files_);
    EXPECT_EQ(error.code, ErrorCode::kDenied);
    EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
  }
}

// A client by hand, as ours always has a certificate and never speaks an old version.
std::string handshake_by_hand(uint16_t port, int version) {
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &::SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), version);
  const std::unique_ptr<BIO, decltype(&::BIO_free_all)> bio(BIO_new_ssl_connect(context.get()),
                                                            &::BIO_free_all);
  BIO_set_conn_hostname(bio.get(), ("127.0.0.1:" + std::to_string(port)).c_str());
  if (BIO_do_connect(bio.get()) <= 0 || BIO_do_handshake(bio.get()) <= 0) return "handshake failed";
  char byte;
  return BIO_read(bio.get(), &byte, 1) <= 0 ? "closed" : "open";
}

TEST_F(Tls, ClientWithoutCertificateIsRefused) {
  serve(server_files_);
  EXPECT_EQ(handshake_by_hand(server_->address().port, TLS1_3_VERSION), "closed");
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(Tls, OlderVersionIsRefused) {
  serve(server_files_);
  EXPECT_EQ(handshake_by_hand(server_->address().port, TLS1_2_VERSION), "handshake failed");
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
}

TEST_F(Tls, GarbageAndSilenceInsteadOfAHandshakeAreRefused) {
  limits_.handshake_timeout_ms = 300;
  serve(server_files_);
  RawPeer garbage(server_->address());
  garbage.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(garbage.is_closed_by_peer());
  RawPeer silent(server_->address());
  EXPECT_TRUE(silent.is_closed_by_peer());
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 2; }));
}

TEST_F(Tls, ServerThatGoesIsNoticed) {
  serve(server_files_);
  auto connection = connect(loop_, named("localhost"), client_files_);
  auto unanswered = echo_of(*connection).neverRequest().send();
  EXPECT_EQ(echo(loop_, echo_of(*connection), "x"), "x");
  server_.reset();
  const auto error = error_of([&] { unanswered.wait(loop_.wait_scope()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnreachable);
}

TEST_F(Tls, UnusableFilesAreNamed) {
  const Address any = *Address::parse("tls:127.0.0.1:0");
  const auto listen_error = [&](const std::optional<TlsFiles>& files) {
    auto server = RpcServer::listen(loop_, any, files, {}, nullptr);
    return server ? Error{ErrorCode::kIo, "listens"} : server.error();
  };
  EXPECT_EQ(listen_error(std::nullopt).code, ErrorCode::kInvalid);
  TlsFiles missing = server_files_;
  missing.certificate = "/nowhere/x.pem";
  EXPECT_NE(listen_error(missing).message.find("/nowhere/x.pem"), std::string::npos);
  TlsFiles mismatched = server_files_;
  mismatched.key = client_files_.key;
  EXPECT_NE(listen_error(mismatched).message.find("mismatch"), std::string::npos)
      << listen_error(mismatched).message;
  serve(server_files_);
  EXPECT_EQ(refusal(named("localhost"), missing).code, ErrorCode::kInvalid);
}

TEST_F(Tls, NobodyThereIsUnreachable) {
  serve(server_files_);
  const Address gone = named("127.0.0.1");
  server_.reset();
  const Error error = refusal(gone, client_files_);
  EXPECT_EQ(error.code, ErrorCode::kUnreachable);
  EXPECT_NE(error.message.find(gone.to_string()), std::string::npos) << error.message;
}

}  // namespace
}  // namespace tierpilot::test
