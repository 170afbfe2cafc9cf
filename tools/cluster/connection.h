// A command-line tool's connection to the coordinator, with an event loop of its own: ask, wait for
// the answer, or get an error that names the address. One thread makes, uses and destroys it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rpc/cluster.capnp.h"
#include "rpc/error.h"
#include "rpc/event_loop.h"
#include "rpc/protocol.h"

namespace tierpilot {

inline constexpr const char* kDefaultCoordinator = "unix:/run/tierpilot/coordinator.sock";

struct ConnectOptions {
  std::string address = kDefaultCoordinator;  // "unix:/path" or "tls:host:port"
  std::string tls_ca, tls_certificate, tls_key, tls_crl;
  int64_t timeout_ms = 10'000;  // for connecting, and for each answer
};

// 128 random bits in hex, for requests that may be repeated.
std::string draw_request_id();

class ClusterConnection {
 public:
  // kUnreachable says where nobody answered, why, and what to do.
  static Result<std::unique_ptr<ClusterConnection>> open(const ConnectOptions& options);
  ~ClusterConnection();

  wire::Cluster::Client& cluster();
  // Who answers there.
  const ProgramVersion& coordinator() const { return coordinator_; }
  EventLoop& loop();

  // Sends and waits. `extra_ms` is added to the timeout for calls that wait themselves.
  template <class Params, class Results>
  Result<capnp::Response<Results>> call(capnp::Request<Params, Results>&& request,
                                        int64_t extra_ms = 0) {
    return wait(
        request.send().then([](capnp::Response<Results>&& response) { return kj::mv(response); }),
        extra_ms);
  }

  // Waits for a promise on this connection's loop.
  template <class T>
  Result<T> wait(kj::Promise<T> promise, int64_t extra_ms = 0) {
    auto late = loop().after_ms(timeout_ms_ + extra_ms).then([this, extra_ms]() -> kj::Promise<T> {
      return to_exception(late_error(timeout_ms_ + extra_ms));
    });
    try {
      if constexpr (std::is_void_v<T>) {
        promise.exclusiveJoin(kj::mv(late)).wait(loop().wait_scope());
        return {};
      } else {
        return promise.exclusiveJoin(kj::mv(late)).wait(loop().wait_scope());
      }
    } catch (const kj::Exception& exception) {
      return tl::unexpected(explain(to_error(exception)));
    }
  }

 private:
  struct Impl;
  explicit ClusterConnection(const ConnectOptions& options);
  Status connect(const ConnectOptions& options);
  Status greet();
  Error late_error(int64_t waited_ms) const;
  // Adds the address and what to do to errors of the connection itself.
  Error explain(Error error) const;

  std::string address_;
  int64_t timeout_ms_;
  ProgramVersion coordinator_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierpilot
