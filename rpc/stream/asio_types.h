// The Asio types behind ByteStream. Expensive to include: only for the .cc files of this folder.
#pragma once

#include <kj/async.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>

#include "rpc/limits.h"
#include "rpc/stream/byte_stream.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

// One type for Unix and TCP sockets.
using PlainSocket = boost::asio::generic::stream_protocol::socket;
using TlsSocket = boost::asio::ssl::stream<PlainSocket>;

kj::Own<ByteStream> make_stream(std::unique_ptr<PlainSocket> socket, const RpcLimits& limits);
// After the handshake. `tls` may end it, when it does not trust the peer any more.
kj::Own<ByteStream> make_stream(std::unique_ptr<TlsSocket> socket, TlsIdentity& tls,
                                const RpcLimits& limits);

// Turns one asynchronous operation into a promise of its error code: `start` gets the handler.
// Dropping the promise does not end the operation, so whatever it works on must outlive it.
template <class Start>
kj::Promise<boost::system::error_code> completion_of(Start&& start) {
  auto paf = kj::newPromiseAndFulfiller<boost::system::error_code>();
  start([fulfiller = kj::mv(paf.fulfiller)](boost::system::error_code error, auto&&...) mutable {
    fulfiller->fulfill(kj::mv(error));
  });
  return kj::mv(paf.promise);
}

}  // namespace tierpilot
