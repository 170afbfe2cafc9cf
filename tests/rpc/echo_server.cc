#include "tests/rpc/echo_server.h"

#include <cstring>

#include "rpc/error.h"

namespace tierpilot::test {
namespace {

kj::Promise<uint64_t> notify_from(Listener::Client listener, uint32_t number, uint32_t count,
                                  uint64_t sum) {
  if (number == count) return sum;
  auto request = listener.eventRequest();
  request.setNumber(number);
  return request.send().then([=](capnp::Response<Listener::EventResults> response) mutable {
    return notify_from(listener, number + 1, count, sum + response.getNumber());
  });
}

uint32_t depth_of(Node::Reader node) {
  return node.hasNext() ? 1 + depth_of(node.getNext()) : 1;
}

}  // namespace

kj::Promise<void> EchoServer::echo(EchoContext context) {
  context.getResults().setText(context.getParams().getText());
  return kj::READY_NOW;
}

kj::Promise<void> EchoServer::blob(BlobContext context) {
  context.getResults().setData(context.getParams().getData());
  return kj::READY_NOW;
}

kj::Promise<void> EchoServer::make(MakeContext context) {
  const uint32_t size = context.getParams().getSize();
  auto data = context.getResults().initData(size);
  std::memset(data.begin(), 'x', data.size());
  return kj::READY_NOW;
}

kj::Promise<void> EchoServer::child(ChildContext context) {
  context.getResults().setEcho(kj::heap<EchoServer>(peer_));
  return kj::READY_NOW;
}

kj::Promise<void> EchoServer::notify(NotifyContext context) {
  auto params = context.getParams();
  return notify_from(params.getListener(), 0, params.getCount(), 0)
      .then([context](uint64_t sum) mutable { context.getResults().setSum(sum); });
}

kj::Promise<void> EchoServer::never(NeverContext) {
  return kj::NEVER_DONE;
}

kj::Promise<void> EchoServer::fail(FailContext context) {
  auto params = context.getParams();
  return to_exception({error_code_from_name(params.getCode().cStr()), params.getMessage().cStr()});
}

kj::Promise<void> EchoServer::peer(PeerContext context) {
  auto results = context.getResults();
  results.setTransport(peer_.transport);
  results.setName(peer_.name);
  results.setUid(peer_.uid ? static_cast<int64_t>(*peer_.uid) : -1);
  results.setPid(peer_.pid ? static_cast<int64_t>(*peer_.pid) : -1);
  return kj::READY_NOW;
}

kj::Promise<void> EchoServer::deep(DeepContext context) {
  context.getResults().setDepth(depth_of(context.getParams().getNode()));
  return kj::READY_NOW;
}

}  // namespace tierpilot::test
