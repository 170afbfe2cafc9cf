// Mutual TLS: who gets in, and what those are told who do not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "rpc/error.h"
#include "tests/rpc/raw_peer.h"
#include "tests/rpc/tls_scene.h"

namespace tierpilot::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

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

TEST_F(Tls, WhoHasManyConnectionsLeavesRoomToOthers) {
  limits_.max_connections = 4;
  limits_.max_connections_of_peer = 2;
  limits_.spare_idle_ms = 1;
  serve(server_files_);
  auto one = connect(loop_, named("localhost"), client_files_);
  auto other = connect(loop_, named("localhost"), client_files_);
  const auto one_busy = echo_of(*one).neverRequest().send();
  auto other_busy = echo_of(*other).neverRequest().send().ignoreResult();
  EXPECT_EQ(echo(loop_, echo_of(*one), "x") + echo(loop_, echo_of(*other), "y"), "xy");
  EXPECT_EQ(refusal(named("localhost"), client_files_).code, ErrorCode::kUnreachable);
  const auto other_files = authority_.issue("node-8", kLocalNames);
  auto idle = connect(loop_, named("localhost"), other_files);
  auto used = connect(loop_, named("localhost"), other_files);
  EXPECT_EQ(echo(loop_, echo_of(*used), "x"), "x");
  loop_.after_ms(20).wait(loop_.wait_scope());
  auto next = connect(loop_, named("localhost"), other_files);
  idle->on_disconnect().wait(loop_.wait_scope());  // its own makes room
  EXPECT_EQ(echo(loop_, echo_of(*next), "x"), "x");
  other = nullptr;
  ASSERT_TRUE(server_->comes_true([](ServerThread& s) { return s.connections() == 3; }));
  EXPECT_EQ(echo(loop_, echo_of(*connect(loop_, named("localhost"), client_files_)), "x"), "x");
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
  serve(stranger_.issue("impostor", kLocalNames));
  const Error error = refusal(named("localhost"), client_files_);
  EXPECT_EQ(error.code, ErrorCode::kDenied) << error.message;
  EXPECT_NE(error.message.find("certificate verify failed"), std::string::npos) << error.message;
}

TEST_F(Tls, ClientOfAnotherAuthorityIsRefused) {
  serve(server_files_);
  TlsFiles files = stranger_.issue("intruder", kLocalNames);
  files.ca = client_files_.ca;  // it does trust the server
  const Error error = refusal(named("localhost"), files);
  EXPECT_EQ(error.code, ErrorCode::kDenied) << error.message;
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
}

// Each in its words.
TEST_F(Tls, WhoIsRefusedIsToldWhatIsWrongWithItsCertificate) {
  serve(server_files_);
  constexpr long kDay_s = Validity::kDay_s;
  const auto told =
      refusal(named("localhost"), authority_.issue("late", kLocalNames, {-2 * kDay_s, -kDay_s}));
  EXPECT_EQ(told.code, ErrorCode::kDenied);
  EXPECT_NE(told.message.find("this program's certificate has expired"), std::string::npos)
      << told.message;
  TlsFiles files = stranger_.issue("intruder", kLocalNames);
  files.ca = client_files_.ca;
  const auto unknown = refusal(named("localhost"), files);
  EXPECT_NE(unknown.message.find("is of an authority that the other side does not know"),
            std::string::npos)
      << unknown.message;
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
    const auto tls = files ? TlsIdentity::load(*files) : Result<tierpilot::Tls>();
    if (!tls) return tls.error();
    auto server = RpcServer::listen(loop_, any, *tls, {}, nullptr);
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

TEST_F(Tls, ARenewedCertificateIsUsedFromTheReloadOn) {
  serve(server_files_);
  auto old = connect(loop_, named("localhost"), client_files_);
  authority_.issue("coordinator", "DNS:renewed.example,IP:127.0.0.1");
  ASSERT_TRUE(server_->reload());
  auto fresh = connect(loop_, named("127.0.0.1"), client_files_);
  EXPECT_EQ(fresh->peer().hosts, std::vector<std::string>{"renewed.example"});
  EXPECT_EQ(echo(loop_, echo_of(*old), "goes on"), "goes on");
}

TEST_F(Tls, ABrokenFileChangesNothingAndIsNamed) {
  serve(server_files_);
  std::ofstream(server_files_.certificate) << "no certificate";
  const auto reloaded = server_->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_NE(reloaded.error().message.find(server_files_.certificate), std::string::npos);
  auto connection = connect(loop_, named("localhost"), client_files_);
  EXPECT_EQ(echo(loop_, echo_of(*connection), "x"), "x");
}

TEST_F(Tls, WhoIsRevokedIsCutAndRefusedAndOthersAreNot) {
  server_files_.crl = authority_.revoke({});
  const auto other_files = authority_.issue("node-8", kLocalNames);
  serve(server_files_);
  auto revoked = connect(loop_, named("localhost"), client_files_);
  auto other = connect(loop_, named("localhost"), other_files);
  auto unanswered = echo_of(*revoked).neverRequest().send();
  EXPECT_EQ(echo(loop_, echo_of(*revoked), "x"), "x");
  authority_.revoke({client_files_.certificate});
  ASSERT_TRUE(server_->reload());
  EXPECT_TRUE(error_of([&] { unanswered.wait(loop_.wait_scope()); }));
  EXPECT_EQ(refusal(named("localhost"), client_files_).code, ErrorCode::kDenied);
  EXPECT_EQ(echo(loop_, echo_of(*other), "goes on"), "goes on");
  // A new one of the same name.
  const auto renewed = authority_.issue("node-7", kLocalNames);
  auto again = connect(loop_, named("localhost"), renewed);
  EXPECT_EQ(echo(loop_, echo_of(*again), "x"), "x");
}

TEST_F(Tls, ARevokedServerIsRefused) {
  serve(server_files_);
  client_files_.crl = authority_.revoke({server_files_.certificate});
  const Error error = refusal(named("localhost"), client_files_);
  EXPECT_EQ(error.code, ErrorCode::kDenied);
  EXPECT_NE(error.message.find("revoked"), std::string::npos) << error.message;
}

TEST_F(Tls, AnExpiredPeerIsCutAtTheReload) {
  serve(server_files_);
  const auto brief = authority_.issue("brief", kLocalNames, {.from_s = -600, .until_s = 3});
  auto connection = connect(loop_, named("localhost"), brief);
  auto unanswered = echo_of(*connection).neverRequest().send();
  EXPECT_EQ(echo(loop_, echo_of(*connection), "x"), "x");
  std::this_thread::sleep_for(std::chrono::seconds(5));
  ASSERT_TRUE(server_->reload());
  EXPECT_TRUE(error_of([&] { unanswered.wait(loop_.wait_scope()); }));
  EXPECT_EQ(refusal(named("localhost"), brief).code, ErrorCode::kDenied);
}

TEST_F(Tls, OneThatExpiresIsCutWithoutAReload) {
  serve(server_files_);
  const auto brief = authority_.issue("brief", kLocalNames, {.from_s = -600, .until_s = 3});
  auto connection = connect(loop_, named("localhost"), brief);
  auto unanswered = echo_of(*connection).neverRequest().send();
  EXPECT_EQ(echo(loop_, echo_of(*connection), "x"), "x");
  std::this_thread::sleep_for(std::chrono::seconds(5));
  server_->close_distrusted();
  EXPECT_TRUE(error_of([&] { unanswered.wait(loop_.wait_scope()); }));
}

TEST_F(Tls, ACertificateThatIsNamedLikeAnAccountIsRefused) {
  serve(server_files_);
  const auto impostor = authority_.issue("uid 1000", kLocalNames);
  // The client's own handshake ends before the server looks at the name.
  auto late = error_of([&] {
    auto connection = connect(loop_, named("localhost"), impostor);
    echo(loop_, echo_of(*connection), "x");
  });
  EXPECT_TRUE(late);
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(Tls, ACertificateThatNamesNobodyIsRefusedOfAClient) {
  serve(server_files_);
  auto late = error_of([&] {
    auto connection = connect(loop_, named("localhost"), authority_.issue("", kLocalNames));
    echo(loop_, echo_of(*connection), "x");
  });
  EXPECT_TRUE(late);
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
}

// Whoever is revoked keeps a connection half way through its handshake, so that it began with what
// was read before.
TEST_F(Tls, AHandshakeThatBeganBeforeAReloadIsJudgedByWhatIsReadNow) {
  server_files_.crl = authority_.revoke({});
  serve(server_files_);
  const auto identity = value_or_throw(TlsIdentity::load(client_files_));
  asio::io_context io;
  asio::ssl::stream<tcp::socket> stream(io, *identity->context(TlsSide::kClient));
  stream.lowest_layer().connect({asio::ip::make_address("127.0.0.1"), server_->address().port});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it is accepted
  authority_.revoke({client_files_.certificate});
  ASSERT_TRUE(server_->reload());
  boost::system::error_code error;
  stream.handshake(asio::ssl::stream_base::client, error);
  EXPECT_TRUE(server_->comes_true([](ServerThread& s) { return s.rejected_peers() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(Tls, AListThatIsOutOfDateStillRefusesWhoIsOnIt) {
  const auto other_files = authority_.issue("node-8", kLocalNames);
  server_files_.crl = authority_.revoke({client_files_.certificate}, -60);
  serve(server_files_);
  EXPECT_EQ(refusal(named("localhost"), client_files_).code, ErrorCode::kDenied);
  auto connection = connect(loop_, named("localhost"), other_files);
  EXPECT_EQ(echo(loop_, echo_of(*connection), "x"), "x");
}

TEST_F(Tls, ListsOfOthersAndForgedOnesAreNotUsed) {
  const auto refused = [&](const std::string& crl) {
    auto files = server_files_;
    files.crl = crl;
    const auto identity = TlsIdentity::load(files);
    return identity ? "it was used" : identity.error().message;
  };
  EXPECT_NE(refused(stranger_.revoke({})).find("no list of an authority"), std::string::npos);
  EXPECT_NE(refused(server_files_.certificate).find("no list"), std::string::npos);
  EXPECT_NE(refused("/nowhere/crl.pem").find("/nowhere/crl.pem"), std::string::npos);
  const TemporaryFolder elsewhere;
  const TestAuthority impostor(elsewhere.path(), "cluster");  // the same name, another key
  EXPECT_NE(refused(impostor.revoke({})).find("signature"), std::string::npos);
}

TEST_F(Tls, AKeyMayComeAsADescriptor) {
  const UniqueFd key(::open(server_files_.key.c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(server_files_.key);
  server_files_.key = "fd:" + std::to_string(key.get());
  serve(server_files_);
  auto connection = connect(loop_, named("localhost"), client_files_);
  EXPECT_EQ(connection->peer().name, "coordinator");
  EXPECT_TRUE(server_->reload()) << "it is read from its begin again";
}

TEST_F(Tls, ChangedFilesAreReadWhenTheyHaveSettled) {
  serve(server_files_);
  auto identity = value_or_throw(TlsIdentity::load(server_files_));
  EXPECT_FALSE(identity->settled_change());
  authority_.issue("coordinator", kLocalNames);
  EXPECT_FALSE(identity->settled_change()) << "it may be written still";
  EXPECT_TRUE(identity->settled_change());
  ASSERT_TRUE(identity->reload());
  EXPECT_FALSE(identity->settled_change());
}

TEST_F(Tls, FilesThatBecomeReadableAreReadThen) {
  serve(server_files_);
  auto identity = value_or_throw(TlsIdentity::load(server_files_));
  std::filesystem::permissions(server_files_.key, std::filesystem::perms::none);
  EXPECT_FALSE(identity->settled_change());
  EXPECT_TRUE(identity->settled_change());
  (void)identity->reload();  // which fails, but for root
  std::filesystem::permissions(server_files_.key, std::filesystem::perms::owner_read);
  EXPECT_FALSE(identity->settled_change());
  EXPECT_TRUE(identity->settled_change());
  EXPECT_TRUE(identity->reload());
}

TEST_F(Tls, NobodyThereIsUnreachable) {
  serve(server_files_);
  const Address gone = named("127.0.0.1");
  server_.reset();
  const Error error = refusal(gone, client_files_);
  EXPECT_EQ(error.code, ErrorCode::kUnreachable);
  EXPECT_NE(error.message.find(gone.to_string()), std::string::npos) << error.message;
}

// As who has too many connections does: nothing is wrong with a certificate.
TEST_F(Tls, WhoClosesWithoutAWordIsUnreachable) {
  serve(server_files_);
  const Address there = named("127.0.0.1");
  server_.reset();
  ClosingListener listener(there.port);
  const Error error = refusal(there, client_files_);
  EXPECT_EQ(error.code, ErrorCode::kUnreachable);
  EXPECT_NE(error.message.find("many connections"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace tierpilot::test
