#include "daemon/agent/data_server.h"

#include <fmt/format.h>

#include <vector>

#include "daemon/agent/completions.h"
#include "daemon/memory/pool/workers.h"
#include "rpc/node.capnp.h"
#include "rpc/server.h"

namespace tierpilot::agent {
namespace {

using Bytes = std::vector<std::byte>;

class DataService final : public wire::DataSource::Server {
 public:
  DataService(EventLoop& loop, Pool& pool, Workers& workers)
      : loop_(loop), pool_(pool), workers_(workers) {}

  kj::Promise<void> read(ReadContext context) override {
    if (reads_.size() >= DataServer::kMaxReads)
      value_or_throw(Status(fail(ErrorCode::kExhausted, "too many reads at once")));
    const auto request = context.getParams();
    auto pending = reads_.add();
    workers_.add([this_pool = &pool_, this_loop = &loop_, complete = std::move(pending.complete),
                  name = std::string(request.getDataset().cStr(), request.getDataset().size()),
                  version = request.getVersion(), offset = request.getOffset(),
                  bytes = std::min(request.getMaxBytes(), DataServer::kMaxReadBytes)] {
      auto data = std::make_shared<Bytes>(bytes);
      auto got = this_pool->read(name, version, offset, *data);
      if (got) data->resize(*got);
      Result<std::shared_ptr<Bytes>> result = data;
      if (!got) result = tl::unexpected(got.error());
      this_loop->post([complete, result = std::move(result)] { complete(result); });
    });
    context.releaseParams();
    return pending.promise.then([context](std::shared_ptr<Bytes> data) mutable {
      context.getResults(capnp::MessageSize{data->size() / sizeof(capnp::word) + 16, 0})
          .setData(kj::arrayPtr(reinterpret_cast<const kj::byte*>(data->data()), data->size()));
    });
  }

 private:
  EventLoop& loop_;
  Pool& pool_;
  Workers& workers_;
  Completions<std::shared_ptr<Bytes>> reads_;
};

}  // namespace

// Members go in reverse: connections first, then the service, then the thread that it uses.
struct DataServer::Impl {
  explicit Impl(EventLoop& loop, Pool& pool)
      : workers(1), service(kj::heap<DataService>(loop, pool, workers)) {}

  Workers workers;
  wire::DataSource::Client service;
  std::unique_ptr<RpcServer> server;
};

DataServer::DataServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataServer::~DataServer() = default;

Result<std::unique_ptr<DataServer>> DataServer::listen(EventLoop& loop, const Address& address,
                                                       const std::optional<TlsFiles>& tls,
                                                       Pool& pool) {
  auto impl = std::make_unique<Impl>(loop, pool);
  auto server = RpcServer::listen(
      loop, address, tls, RpcLimits{},
      [&service = impl->service](const Peer&) { return capnp::Capability::Client(service); });
  if (!server) return tl::unexpected(server.error());
  impl->server = std::move(*server);
  return std::unique_ptr<DataServer>(new DataServer(std::move(impl)));
}

Address DataServer::address() const {
  return impl_->server->address();
}

}  // namespace tierpilot::agent
