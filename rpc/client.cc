#include "rpc/client.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "rpc/error.h"
#include "rpc/session.h"

namespace tierpilot {
namespace {

// Why the connection ended, if it was not asked to: the calls that fail only say "disconnected".
using Ending = std::optional<Error>;

kj::Exception refused(const Address& address, const Ending& ending, const Error& error) {
  const Error& cause = ending.value_or(error);
  return to_exception(
      {cause.code, fmt::format("cannot connect to {}: {}", address.to_string(), cause.message)});
}

}  // namespace

RpcConnection::RpcConnection(std::unique_ptr<Session> session, capnp::Capability::Client bootstrap)
    : session_(std::move(session)), bootstrap_(kj::mv(bootstrap)) {}
RpcConnection::~RpcConnection() = default;

kj::Promise<void> RpcConnection::on_disconnect() {
  return session_->on_disconnect();
}
const Peer& RpcConnection::peer() const {
  return session_->peer();
}

kj::Promise<kj::Own<RpcConnection>> RpcConnection::connect(EventLoop& loop, const Address& address,
                                                           const Tls& tls,
                                                           const RpcLimits& limits) {
  return dial(loop, address, tls, limits).then([&loop, address, limits](Channel channel) {
    auto ending = std::make_shared<Ending>();
    auto session =
        std::make_unique<Session>(loop, kj::mv(channel), limits, capnp::rpc::twoparty::Side::CLIENT,
                                  nullptr, [ending, address](const Error& error) {
                                    *ending = error;
                                    spdlog::debug("{}: {}", address.to_string(), error.message);
                                  });
    auto bootstrap = session->bootstrap();
    auto connection = kj::heap<RpcConnection>(std::move(session), bootstrap);
    return bootstrap.whenResolved().then(
        [connection = kj::mv(connection)]() mutable { return kj::mv(connection); },
        [address, ending](kj::Exception&& error) -> kj::Own<RpcConnection> {
          kj::throwFatalException(refused(address, *ending, to_error(error)));
        });
  });
}

}  // namespace tierpilot
