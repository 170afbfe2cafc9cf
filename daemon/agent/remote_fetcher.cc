#include "daemon/agent/remote_fetcher.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "rpc/client.h"
#include "rpc/error.h"
#include "rpc/node.capnp.h"

namespace tierpilot::agent {

// A worker thread that waits, and the memory that it wants filled.
struct RemoteFetcher::Waiter {
  explicit Waiter(std::span<std::byte> into) : into(into) {}

  void deliver(Result<kj::ArrayPtr<const kj::byte>> data) {
    std::lock_guard lock(mutex);
    if (abandoned || result) return;
    if (data) {
      const size_t bytes = std::min(data->size(), into.size());
      if (bytes > 0) std::memcpy(into.data(), data->begin(), bytes);
      result = bytes;
    } else {
      result = tl::unexpected(data.error());
    }
    done.notify_one();
  }

  std::span<std::byte> into;
  std::mutex mutex;
  std::condition_variable done;
  bool abandoned = false;  // `into` is not there any more
  std::optional<Result<size_t>> result;
};

class RemoteFetcher::Sources : public std::enable_shared_from_this<Sources> {
 public:
  // Address, dataset, version, and who reads: a task that reads a dataset and one that copies it
  // for writing may fetch it at the same moment, each from its own offset.
  using Key = std::tuple<std::string, std::string, uint64_t, std::thread::id>;

  Sources(EventLoop& loop, std::optional<TlsFiles> tls) : loop_(loop), tls_(std::move(tls)) {}

  void read(const Key& key, uint64_t offset, const std::shared_ptr<Waiter>& waiter) {
    Stream& stream = streams_[key];
    stream.used_ns = system_clock().boot_ns();
    // Chunks go here and not when they arrive: a promise must not be dropped by its own
    // continuation.
    while (!stream.ahead.empty() && !stream.ahead.front()->usable(offset)) stream.ahead.pop_front();
    if (!stream.link || stream.link->broken) {
      stream.ahead.clear();
      stream.link = link_to(std::get<0>(key));
    }
    stream.link->used_ns = stream.used_ns;
    const bool sequential = waiter->into.size() == kChunkBytes;
    if (stream.ahead.empty()) ask(stream, key, offset, waiter->into.size());
    while (sequential && stream.ahead.size() < kChunksAhead)
      ask(stream, key, stream.ahead.back()->offset + kChunkBytes, kChunkBytes);
    stream.ahead.front()->waiter = waiter;
    stream.ahead.front()->deliver();
    if (!sweeping_) sweep_later();
  }

 private:
  static constexpr int64_t kSweepMs = 10'000;
  static constexpr int64_t kStreamIdleNs = 10'000'000'000;
  static constexpr int64_t kLinkIdleNs = 60'000'000'000;

  struct Link {
    wire::DataSource::Client source = nullptr;
    kj::Own<RpcConnection> connection;
    kj::Promise<void> watch = nullptr;
    bool broken = false;
    int64_t used_ns = 0;
  };
  struct Chunk {
    uint64_t offset = 0;
    std::optional<capnp::Response<wire::DataSource::ReadResults>> response;
    std::optional<Error> error;
    std::shared_ptr<Waiter> waiter;
    kj::Promise<void> task = nullptr;

    bool usable(uint64_t wanted) const { return offset == wanted && !error; }
    void deliver() {
      if (!waiter || (!response && !error)) return;
      if (error)
        waiter->deliver(tl::unexpected(*error));
      else
        waiter->deliver(kj::ArrayPtr<const kj::byte>(response->getData()));
      waiter.reset();
    }
  };
  struct Stream {
    std::shared_ptr<Link> link;
    std::deque<std::unique_ptr<Chunk>> ahead;
    int64_t used_ns = 0;
  };

  std::shared_ptr<Link> link_to(const std::string& address) {
    auto& link = links_[address];
    if (link && !link->broken) return link;
    link = std::make_shared<Link>();
    // The call queue of a promised client holds requests until the connection is there.
    link->source = connect(address, link);
    return link;
  }

  kj::Promise<wire::DataSource::Client> connect(const std::string& address,
                                                std::weak_ptr<Link> weak) {
    auto parsed = Address::parse(address);
    if (!parsed) return to_exception(parsed.error());
    return RpcConnection::connect(loop_, *parsed, tls_).then([weak](kj::Own<RpcConnection> made) {
      auto source = made->bootstrap().castAs<wire::DataSource>();
      if (const auto link = weak.lock()) {
        link->watch = made->on_disconnect()
                          .then([weak] {
                            if (const auto link = weak.lock()) link->broken = true;
                          })
                          .eagerlyEvaluate(nullptr);
        link->connection = kj::mv(made);
      }
      return source;
    });
  }

  static void ask(Stream& stream, const Key& key, uint64_t offset, size_t bytes) {
    auto request = stream.link->source.readRequest();
    request.setDataset(std::get<1>(key));
    request.setVersion(std::get<2>(key));
    request.setOffset(offset);
    request.setMaxBytes(static_cast<uint32_t>(bytes));
    auto& chunk = *stream.ahead.emplace_back(std::make_unique<Chunk>());
    chunk.offset = offset;
    chunk.task = request.send()
                     .then(
                         [&chunk](capnp::Response<wire::DataSource::ReadResults>&& response) {
                           chunk.response = kj::mv(response);
                           chunk.deliver();
                         },
                         [&chunk, weak = std::weak_ptr(stream.link)](kj::Exception&& exception) {
                           chunk.error = to_error(exception);
                           const auto link = weak.lock();
                           if (link && chunk.error->code == ErrorCode::kUnreachable)
                             link->broken = true;
                           chunk.deliver();
                         })
                     .eagerlyEvaluate(nullptr);
  }

  void sweep_later() {
    sweeping_ = true;
    loop_.detach(loop_.after_ms(kSweepMs).then([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->sweep();
    }),
                 "closing idle data connections");
  }

  void sweep() {
    const int64_t now_ns = system_clock().boot_ns();
    std::erase_if(streams_,
                  [&](const auto& item) { return now_ns - item.second.used_ns > kStreamIdleNs; });
    std::erase_if(links_,
                  [&](const auto& item) { return now_ns - item.second->used_ns > kLinkIdleNs; });
    sweeping_ = false;
    if (!streams_.empty() || !links_.empty()) sweep_later();
  }

  EventLoop& loop_;
  const std::optional<TlsFiles> tls_;
  std::map<std::string, std::shared_ptr<Link>> links_;
  std::map<Key, Stream> streams_;
  bool sweeping_ = false;
};

RemoteFetcher::RemoteFetcher(EventLoop& loop, std::optional<TlsFiles> tls, int64_t timeout_ms)
    : loop_(loop),
      timeout_ms_(timeout_ms),
      sources_(std::make_shared<Sources>(loop, std::move(tls))) {}

RemoteFetcher::~RemoteFetcher() {
  close();
}

Result<size_t> RemoteFetcher::read(const std::string& address, const std::string& name,
                                   uint64_t version, uint64_t offset, std::span<std::byte> into) {
  auto waiter = std::make_shared<Waiter>(into);
  {
    std::lock_guard lock(mutex_);
    if (closed_) return fail(ErrorCode::kUnavailable, "the daemon is stopping");
    waiting_.insert(waiter);
    loop_.post([weak = std::weak_ptr(sources_),
                key = Sources::Key(address, name, version, std::this_thread::get_id()), offset,
                waiter] {
      if (const auto sources = weak.lock()) sources->read(key, offset, waiter);
    });
  }
  std::optional<Result<size_t>> result;
  {
    std::unique_lock lock(waiter->mutex);
    waiter->done.wait_for(lock, std::chrono::milliseconds(timeout_ms_),
                          [&] { return waiter->result.has_value(); });
    waiter->abandoned = true;
    result = std::move(waiter->result);
  }
  std::lock_guard lock(mutex_);
  waiting_.erase(waiter);
  if (result) return std::move(*result);
  return fail(ErrorCode::kTimeout, fmt::format("no answer from {} in {} ms", address, timeout_ms_));
}

void RemoteFetcher::close() {
  std::set<std::shared_ptr<Waiter>> waiting;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& waiter : waiting)
    waiter->deliver(fail(ErrorCode::kUnavailable, "the daemon is stopping"));
  sources_.reset();
}

}  // namespace tierpilot::agent
