// An echo server on a thread and an event loop of its own, and a folder for its socket.
#pragma once

#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include "rpc/client.h"
#include "rpc/event_loop.h"
#include "rpc/server.h"
#include "tests/rpc/echo.capnp.h"

namespace tierpilot::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  Address socket_address() const;

 private:
  std::filesystem::path path_;
};

class ServerThread {
 public:
  // Throws when listening fails.
  ServerThread(const Address& address, std::optional<TlsFiles> tls = {}, RpcLimits limits = {},
               RpcServer::Bootstrap bootstrap = {});
  ~ServerThread();

  const Address& address() const { return address_; }

  // Runs `question` on the server's loop.
  template <class Question>
  auto ask(Question question) {
    std::promise<decltype(question(*server_))> answer;
    loop_->post([&] { answer.set_value(question(*server_)); });
    return answer.get_future().get();
  }
  size_t connections();
  uint64_t rejected_frames();
  uint64_t rejected_peers();
  // Whether `condition` came true within a generous time.
  bool comes_true(const std::function<bool(ServerThread&)>& condition);
  // Reads the TLS files again.
  Status reload();
  // See TlsIdentity.
  void close_distrusted();

 private:
  void serve(const Address& address, const std::optional<TlsFiles>& tls, const RpcLimits& limits,
             RpcServer::Bootstrap bootstrap, std::promise<Result<Address>>& listening);

  EventLoop* loop_ = nullptr;
  Tls tls_;
  RpcServer* server_ = nullptr;
  Address address_;
  std::thread thread_;
};

// Connects and waits; throws what connect() rejects with.
kj::Own<RpcConnection> connect(EventLoop& loop, const Address& address,
                               const std::optional<TlsFiles>& tls = {},
                               const RpcLimits& limits = {});
inline Echo::Client echo_of(RpcConnection& connection) {
  return connection.bootstrap().castAs<Echo>();
}
// One echo call's answer.
std::string echo(EventLoop& loop, Echo::Client client, const std::string& text);

// Of this process, with all its servers.
size_t resident_bytes();

// What `work` throws, as an Error; nothing if it does not.
std::optional<Error> error_of(const std::function<void()>& work);

}  // namespace tierpilot::test
