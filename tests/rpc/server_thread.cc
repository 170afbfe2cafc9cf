#include "tests/rpc/server_thread.h"

#include <kj/debug.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "rpc/error.h"
#include "tests/rpc/echo_server.h"

namespace tierpilot::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tierpilot-rpc-XXXXXX").string();
  KJ_REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
Address TemporaryFolder::socket_address() const {
  return *Address::parse("unix:" + (path_ / "rpc.sock").string());
}

ServerThread::ServerThread(const Address& address, std::optional<TlsFiles> tls, RpcLimits limits,
                           RpcServer::Bootstrap bootstrap) {
  if (!bootstrap)
    bootstrap = [](const Peer& peer, const auto&) {
      return Echo::Client(kj::heap<EchoServer>(peer));
    };
  spdlog::default_logger_raw();  // made before there are threads: libspdlog hides its lock from
                                 // TSan
  std::promise<Result<Address>> listening;
  auto outcome = listening.get_future();
  thread_ =
      std::thread([&, this] { serve(address, tls, limits, std::move(bootstrap), listening); });
  auto bound = outcome.get();
  if (!bound) thread_.join();
  address_ = value_or_throw(bound);
}

void ServerThread::serve(const Address& address, const std::optional<TlsFiles>& tls,
                         const RpcLimits& limits, RpcServer::Bootstrap bootstrap,
                         std::promise<Result<Address>>& listening) {
  EventLoop loop;
  const auto identity = tls ? TlsIdentity::load(*tls) : Result<Tls>();
  if (!identity) return listening.set_value(tl::unexpected(identity.error()));
  tls_ = *identity;
  auto server = RpcServer::listen(loop, address, *identity, limits, std::move(bootstrap));
  if (!server) return listening.set_value(tl::unexpected(server.error()));
  loop_ = &loop;
  server_ = server->get();
  listening.set_value((*server)->address());
  loop.run();
}

ServerThread::~ServerThread() {
  loop_->stop();
  thread_.join();
}

size_t ServerThread::connections() {
  return ask([](RpcServer& server) { return server.connections(); });
}
uint64_t ServerThread::rejected_frames() {
  return ask([](RpcServer& server) { return server.rejected_frames(); });
}
uint64_t ServerThread::rejected_peers() {
  return ask([](RpcServer& server) { return server.rejected_peers(); });
}

Status ServerThread::reload() {
  return ask([this](RpcServer&) { return tls_->reload(); });
}

void ServerThread::close_distrusted() {
  ask([this](RpcServer&) {
    tls_->close_distrusted();
    return true;
  });
}

bool ServerThread::comes_true(const std::function<bool(ServerThread&)>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition(*this)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

kj::Own<RpcConnection> connect(EventLoop& loop, const Address& address,
                               const std::optional<TlsFiles>& tls, const RpcLimits& limits) {
  const auto identity = tls ? TlsIdentity::load(*tls) : Result<Tls>();
  if (!identity) kj::throwFatalException(to_exception(identity.error()));
  return RpcConnection::connect(loop, address, *identity, limits).wait(loop.wait_scope());
}

std::string echo(EventLoop& loop, Echo::Client client, const std::string& text) {
  auto request = client.echoRequest();
  request.setText(text);
  return request.send().wait(loop.wait_scope()).getText().cStr();
}

size_t resident_bytes() {
  size_t total_pages = 0, resident_pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  KJ_REQUIRE(file != nullptr);
  KJ_REQUIRE(std::fscanf(file, "%zu %zu", &total_pages, &resident_pages) == 2);
  std::fclose(file);
  return resident_pages * 4096;
}

std::optional<Error> error_of(const std::function<void()>& work) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { work(); })) {
    return to_error(*exception);
  }
  return std::nullopt;
}

}  // namespace tierpilot::test
