#include "daemon/agent/data/remote_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "daemon/agent/data/data_links.h"
#include "daemon/agent/data/turn_calls.h"
#include "daemon/agent/node/mailbox.h"
#include "rpc/digest.h"

namespace tierpilot::agent {

// A worker thread that waits, and the memory that it wants filled.
struct RemoteFetcher::Waiter final : Mailbox<size_t> {
  explicit Waiter(std::span<std::byte> into) : into(into) {}

  void deliver(kj::ArrayPtr<const kj::byte> data) {
    put([&] {
      const size_t bytes = std::min(data.size(), into.size());
      if (bytes > 0) std::memcpy(into.data(), data.begin(), bytes);
      return Result<size_t>(bytes);
    });
  }

  const std::span<std::byte> into;  // there while it waits
};

class RemoteFetcher::Sources : public std::enable_shared_from_this<Sources> {
 public:
  // Address, version, and who reads: a task that reads a dataset and one that copies it
  // for writing may fetch it at the same moment, each from its own offset.
  using Key = std::tuple<std::string, DatasetId, std::thread::id>;

  Sources(EventLoop& loop, std::shared_ptr<DataLinks> links, int64_t idle_ms)
      : loop_(loop), links_(std::move(links)), idle_ms_(idle_ms) {}

  void read(const Key& key, uint64_t offset, const std::shared_ptr<Waiter>& waiter) {
    Stream& stream = streams_[key];
    stream.used_ns = system_clock().boot_ns();
    // Chunks go here and not when they arrive: a promise must not be dropped by its own
    // continuation.
    while (!stream.ahead.empty() && !stream.ahead.front()->usable(offset)) stream.ahead.pop_front();
    const auto link = links_->to(std::get<0>(key));
    if (stream.link != link) stream.ahead.clear();
    stream.link = link;
    const bool sequential = waiter->into.size() == kChunkBytes;
    if (stream.ahead.empty()) ask(stream, key, offset, waiter->into.size());
    while (sequential && stream.ahead.size() < kChunksAhead)
      ask(stream, key, stream.ahead.back()->offset + kChunkBytes, kChunkBytes);
    stream.ahead.front()->waiter = waiter;
    stream.ahead.front()->deliver();
    if (!sweeping_) sweep_later();
  }

  // What the source finds is told by itself to the coordinator; here nobody waits for it.
  void doubt(const std::string& address, const DatasetId& id) {
    auto request = links_->to(address)->source.doubtRequest();
    request.setDataset(id.name);
    request.setVersion(id.version);
    write_digest(request.initDigest(), id.digest);
    loop_.detach(request.send().ignoreResult().catch_([](kj::Exception&&) {}),
                 "doubting a copy at " + address);
  }

 private:
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
        waiter->fail_with(*error);
      else
        waiter->deliver(kj::ArrayPtr<const kj::byte>(response->getData()));
      waiter.reset();
    }
  };
  struct Stream {
    std::shared_ptr<DataLink> link;
    std::deque<std::unique_ptr<Chunk>> ahead;
    int64_t used_ns = 0;

    // The source may need longer than a stream is idle.
    bool awaited() const {
      return std::any_of(ahead.begin(), ahead.end(),
                         [](const auto& chunk) { return chunk->waiter && chunk->waiter->waits(); });
    }
  };

  static void ask(Stream& stream, const Key& key, uint64_t offset, size_t bytes) {
    auto request = stream.link->source.readRequest();
    const auto& id = std::get<1>(key);
    request.setDataset(id.name);
    request.setVersion(id.version);
    write_digest(request.initDigest(), id.digest);
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
                         [&chunk, link = stream.link](kj::Exception&& exception) {
                           chunk.error = link->failed(exception);
                           chunk.deliver();
                         })
                     .eagerlyEvaluate(nullptr);
  }

  void sweep_later() {
    sweeping_ = true;
    loop_.detach(loop_.after_ms(idle_ms_).then([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->sweep();
    }),
                 "ending idle data streams");
  }

  void sweep() {
    const int64_t now_ns = system_clock().boot_ns();
    std::erase_if(streams_, [&](const auto& item) {
      const Stream& stream = item.second;
      return now_ns - stream.used_ns > idle_ms_ * 1'000'000 && !stream.awaited();
    });
    sweeping_ = false;
    if (!streams_.empty()) sweep_later();
  }

  EventLoop& loop_;
  const std::shared_ptr<DataLinks> links_;
  const int64_t idle_ms_;
  std::map<Key, Stream> streams_;
  bool sweeping_ = false;
};

// On a worker thread: what is asked for ends with it, answered or not.
class RemoteFetcher::HeldTurn final : public ReadTurn {
 public:
  HeldTurn(EventLoop& loop, std::weak_ptr<TurnCalls> turns, TurnCalls::Id id)
      : loop_(loop), turns_(std::move(turns)), id_(id) {}
  ~HeldTurn() override { tell(&TurnCalls::drop); }
  void done() override { tell(&TurnCalls::done); }

 private:
  void tell(void (TurnCalls::*what)(TurnCalls::Id)) {
    loop_.post([weak = turns_, what, id = id_] {
      if (const auto turns = weak.lock()) (turns.get()->*what)(id);
    });
  }

  EventLoop& loop_;
  const std::weak_ptr<TurnCalls> turns_;
  const TurnCalls::Id id_;
};

RemoteFetcher::RemoteFetcher(EventLoop& loop, Tls tls, int64_t timeout_ms, int64_t idle_ms)
    : loop_(loop), timeout_ms_(timeout_ms) {
  auto links = std::make_shared<DataLinks>(loop, std::move(tls));
  sources_ = std::make_shared<Sources>(loop, links, idle_ms);
  turns_ = std::make_shared<TurnCalls>(std::move(links));
}

RemoteFetcher::~RemoteFetcher() {
  close();
}

void RemoteFetcher::set_reader(const std::string& address) {
  turns_->set_reader(address);
}

Result<size_t> RemoteFetcher::read(const std::string& address, const DatasetId& id, uint64_t offset,
                                   std::span<std::byte> into) {
  static constexpr CancelFlag kNever{false};
  const auto waiter = std::make_shared<Waiter>(into);
  return ask(*waiter, waiter, address, timeout_ms_, kNever, [&] {
    loop_.post([weak = std::weak_ptr(sources_),
                key = Sources::Key(address, id, std::this_thread::get_id()), offset, waiter] {
      if (const auto sources = weak.lock()) sources->read(key, offset, waiter);
    });
  });
}

void RemoteFetcher::doubt(const std::string& address, const DatasetId& id) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  loop_.post([weak = std::weak_ptr(sources_), address, id] {
    if (const auto sources = weak.lock()) sources->doubt(address, id);
  });
}

Result<TurnAnswer> RemoteFetcher::turn(const std::string& address, const DatasetId& id, bool wait,
                                       int64_t limit_ms, const CancelFlag& cancel) {
  const auto reply = std::make_shared<TurnCalls::Reply>();
  std::unique_ptr<HeldTurn> held;
  if (!wait) limit_ms = std::min(limit_ms, timeout_ms_);
  auto told = ask(*reply, reply, address, limit_ms, cancel, [&] {
    const auto call = next_turn_++;
    held = std::make_unique<HeldTurn>(loop_, turns_, call);
    loop_.post([weak = std::weak_ptr(turns_), call, address, id, wait, reply] {
      if (const auto turns = weak.lock()) turns->ask(call, address, id, wait, reply);
    });
  });
  if (!told) return tl::unexpected(told.error());
  TurnAnswer answer{nullptr, std::move(told->elsewhere)};
  if (told->turn) answer.turn = std::move(held);
  return answer;
}

// Posts the question unless closed, and waits for the answer to it.
template <class T, class Post>
Result<T> RemoteFetcher::ask(Mailbox<T>& mailbox, const std::shared_ptr<AnyMailbox>& waiting,
                             const std::string& address, int64_t limit_ms, const CancelFlag& cancel,
                             const Post& post) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return fail(ErrorCode::kUnavailable, "the daemon is stopping");
    waiting_.insert(waiting);
    post();
  }
  auto answer = mailbox.take(limit_ms, cancel);
  std::lock_guard lock(mutex_);
  waiting_.erase(waiting);
  if (answer) return std::move(*answer);
  if (cancel) return cancelled("asking " + address);
  return fail(ErrorCode::kTimeout, fmt::format("no answer from {} in {} ms", address, limit_ms));
}

void RemoteFetcher::close() {
  std::set<std::shared_ptr<AnyMailbox>> waiting;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& one : waiting)
    one->fail_with({ErrorCode::kUnavailable, "the daemon is stopping"});
  turns_.reset();
  sources_.reset();
}

}  // namespace tierpilot::agent
