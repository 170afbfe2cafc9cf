#include "daemon/agent/data/data_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/descriptors.h"
#include "daemon/agent/node/completions.h"
#include "daemon/memory/pool/workers.h"
#include "rpc/digest.h"
#include "rpc/server.h"

namespace tierpilot::agent {
namespace {

using Bytes = std::vector<std::byte>;

// A place in the line, then a turn; given up when it goes.
class Place {
 public:
  Place(std::shared_ptr<ReadTurns> turns, ReadTurns::Id id) : turns_(std::move(turns)), id_(id) {}
  ~Place() { leave(); }
  KJ_DISALLOW_COPY(Place);
  void done() { turns_->done(id_); }
  void leave() { turns_->leave(id_); }

 private:
  const std::shared_ptr<ReadTurns> turns_;
  const ReadTurns::Id id_;
};

class TurnService final : public wire::ReadTurn::Server {
 public:
  TurnService(EventLoop& loop, kj::Own<Place> place)
      : place_(kj::mv(place)),
        end_(loop.after_ms(DataServer::kMaxTurnMs)
                 .then([this] { place_->leave(); })
                 .eagerlyEvaluate(nullptr)) {}
  kj::Promise<void> done(DoneContext) override {
    place_->done();
    return kj::READY_NOW;
  }

 private:
  kj::Own<Place> place_;
  kj::Promise<void> end_;
};

// What all connections share.
struct Shared {
  Shared(EventLoop& loop, Pool& pool, size_t readers)
      : loop(loop), pool(pool), turns(std::make_shared<ReadTurns>(readers)), workers(1) {}

  EventLoop& loop;
  Pool& pool;
  Completions<std::shared_ptr<Bytes>> reads;
  Completions<ReplicaCheck> doubts;
  const std::shared_ptr<ReadTurns> turns;
  std::shared_ptr<AnswerRoom> room;  // once it listens
  Workers workers;
};

// Of one connection.
class DataService final : public wire::DataSource::Server {
 public:
  DataService(Shared& shared, const Peer& peer, const std::shared_ptr<const Unsent>& unsent)
      : shared_(shared), peer_(peer), reader_(AnswerRoom::add(unsent)) {}

  kj::Promise<void> read(ReadContext context) override {
    // Whoever does not wait any more leaves the line.
    context.allowCancellation();
    const auto request = context.getParams();
    const uint32_t bytes = std::min(request.getMaxBytes(), DataServer::kMaxReadBytes);
    const auto id = id_of(request);
    const uint64_t offset = request.getOffset();
    context.releaseParams();
    return shared_.room->enter(reader_, bytes)
        .then([&shared = shared_, context, id, offset,
               bytes](std::shared_ptr<AnswerRoom::Share> share) mutable {
          return read_file(shared, id, offset, bytes, share)
              .then([context, share](std::shared_ptr<Bytes> data) mutable {
                const capnp::MessageSize size{data->size() / sizeof(capnp::word) + 16, 0};
                context.getResults(size).setData(
                    kj::arrayPtr(reinterpret_cast<const kj::byte*>(data->data()), data->size()));
              });
        });
  }

  // Whoever asks: at worst a copy is read once more, and a bound holds for that too.
  kj::Promise<void> doubt(DoubtContext context) override {
    if (shared_.doubts.size() >= kMostDoubts)
      value_or_throw(Status(fail(ErrorCode::kExhausted, "other copies are being looked at")));
    auto pending = shared_.doubts.add();
    shared_.pool.verify(id_of(context.getParams()), std::move(pending.complete));
    context.releaseParams();
    return pending.promise.ignoreResult();
  }

  kj::Promise<void> turn(TurnContext context) override {
    // Whoever does not wait any more leaves the line.
    context.allowCancellation();
    auto paf = kj::newPromiseAndFulfiller<ReadTurns::Answer>();
    const auto told =
        std::make_shared<kj::Own<kj::PromiseFulfiller<ReadTurns::Answer>>>(kj::mv(paf.fulfiller));
    const auto id = value_or_throw(shared_.turns->ask(
        wish_of(context.getParams()),
        [told](const ReadTurns::Answer& answer) { (*told)->fulfill(ReadTurns::Answer(answer)); }));
    context.releaseParams();
    return paf.promise.then(
        [context, &loop = shared_.loop,
         place = kj::heap<Place>(shared_.turns, id)](ReadTurns::Answer answer) mutable {
          auto results = context.getResults();
          results.setElsewhere(answer.elsewhere);
          if (answer.turn) results.setTurn(kj::heap<TurnService>(loop, kj::mv(place)));
        });
  }

 private:
  // The share stays until the bytes are read, also when nobody waits for them any more.
  static kj::Promise<std::shared_ptr<Bytes>> read_file(Shared& shared, const DatasetId& id,
                                                       uint64_t offset, uint32_t bytes,
                                                       std::shared_ptr<AnswerRoom::Share> share) {
    auto pending = shared.reads.add();
    shared.workers.add([pool = &shared.pool, loop = &shared.loop, id, offset, bytes,
                        complete = std::move(pending.complete),
                        share = std::move(share)]() mutable {
      auto data = std::make_shared<Bytes>(bytes);
      auto got = pool->read(id, offset, *data);
      if (got) data->resize(*got);
      Result<std::shared_ptr<Bytes>> result = data;
      if (!got) result = tl::unexpected(got.error());
      // Moved on: it must end on the loop's thread.
      loop->post(
          [complete, result = std::move(result), share = std::move(share)] { complete(result); });
    });
    return kj::mv(pending.promise);
  }

  template <class Request>
  static DatasetId id_of(const Request& request) {
    return {std::string(request.getDataset().cStr(), request.getDataset().size()),
            request.getVersion(), read_digest(request.getDigest())};
  }

  // The caller's words are kept while he waits, and others are sent to where he says he serves.
  ReadTurns::Wish wish_of(wire::DataSource::TurnParams::Reader request) const {
    const std::string_view reader(request.getReader().cStr(), request.getReader().size());
    if (request.getDataset().size() > kMaxNameBytes || reader.size() > kMaxAddressBytes)
      value_or_throw(Status(fail(ErrorCode::kExhausted, "a name is too long")));
    const auto address = Address::parse(reader);
    return {.dataset = id_of(request),
            .reader = std::string(reader),
            .reachable = address && is_at(peer_, *address),
            .wait = request.getWait()};
  }

  static constexpr size_t kMaxNameBytes = 128;
  static constexpr size_t kMaxAddressBytes = 300;
  static constexpr size_t kMostDoubts = 2;

  Shared& shared_;
  const Peer peer_;
  const std::shared_ptr<AnswerRoom::Reader> reader_;
};

RpcLimits limits_of_connections() {
  RpcLimits limits;
  // Tasks, files and the coordinator need the others.
  limits.max_connections =
      std::clamp<uint64_t>(descriptor_limit() / 2, 1, DataServer::kMaxConnections);
  limits.spare_idle_ms = 1'000;
  // Reads that wait for room are a few hundred bytes each.
  limits.max_unanswered_bytes = size_t{128} << 10;
  // Who takes nothing must not fill the room for all of them.
  limits.stall_bytes = size_t{64} << 10;
  return limits;
}

}  // namespace

// Members go in reverse: connections first, then what they share.
struct DataServer::Impl {
  Impl(EventLoop& loop, Pool& pool, size_t readers) : shared(loop, pool, readers) {}

  Shared shared;
  std::unique_ptr<RpcServer> server;
};

DataServer::DataServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataServer::~DataServer() = default;

Result<std::unique_ptr<DataServer>> DataServer::listen(EventLoop& loop, const Address& address,
                                                       const Tls& tls, Pool& pool, size_t readers,
                                                       const AnswerRoom::Limits& room) {
  auto impl = std::make_unique<Impl>(loop, pool, readers);
  auto server = RpcServer::listen(
      loop, address, tls, limits_of_connections(),
      [&shared = impl->shared](const Peer& peer, const auto& unsent) {
        return wire::DataSource::Client(kj::heap<DataService>(shared, peer, unsent));
      });
  if (!server) return tl::unexpected(server.error());
  impl->server = std::move(*server);
  impl->shared.room = std::make_shared<AnswerRoom>(loop, impl->server->unsent(), room);
  return std::unique_ptr<DataServer>(new DataServer(std::move(impl)));
}

Address DataServer::address() const {
  return impl_->server->address();
}

ReadTurns::Totals DataServer::turns() const {
  return impl_->shared.turns->totals();
}

size_t DataServer::unsent_bytes() const {
  return impl_->server->unsent()->bytes();
}

}  // namespace tierpilot::agent
