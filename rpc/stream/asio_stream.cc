#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "rpc/error.h"
#include "rpc/stream/asio_types.h"
#include "rpc/stream/late_writes.h"
#include "rpc/stream/stream_errors.h"

namespace tierpilot {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadAheadBytes = 32 * 1024;
// A buffer that once held a burst is given back.
constexpr size_t kKeptBufferBytes = size_t{1} << 20;
// Of what waits, the least that a peer must take in the time of a stall, but not more than that.
constexpr size_t kLeastTakenPart = 16;
constexpr uint64_t kMostToTakeBytes = uint64_t{1} << 20;

// Outlives its AsyncIoStream while Asio operations are in flight: every handler holds a reference
// and every buffer they touch lives here, so dropping a KJ promise or the stream is always safe.
template <class Socket>
class Connection : public std::enable_shared_from_this<Connection<Socket>> {
 public:
  Connection(std::unique_ptr<Socket> socket, const RpcLimits& limits)
      : socket_(std::move(socket)),
        limits_(limits),
        late_writes_(asio::use_service<LateWrites>(
            asio::query(socket_->get_executor(), asio::execution::context))),
        stall_timer_(socket_->get_executor()),
        linger_timer_(socket_->get_executor()) {
    auto paf = kj::newPromiseAndFulfiller<void>();
    write_disconnected_ = paf.promise.fork();
    write_disconnected_fulfiller_ = kj::mv(paf.fulfiller);
  }
  ~Connection() { unsent_->set(0); }

  // ---- reading

  void fill(void* buffer, size_t min_bytes, size_t max_bytes, ByteStream::Sink& sink) {
    KJ_REQUIRE(wanted_.sink == nullptr, "one read at a time");
    wanted_ = {static_cast<std::byte*>(buffer), min_bytes, max_bytes, 0, &sink};
    serve_reader();
  }
  void stop_filling() { wanted_.sink = nullptr; }

  // ---- writing

  size_t queued_bytes() const { return queued_.size() + sending_.size() - sent_; }
  const std::shared_ptr<Unsent>& unsent() const { return unsent_; }

  // Null: it is queued.
  kj::Maybe<kj::Exception> put(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces,
                               bool may_wait) {
    KJ_REQUIRE(!write_shutdown_, "write after shutdownWrite");
    if (write_failure_ != nullptr) return kj::cp(write_failure_);
    size_t bytes = 0;
    for (const auto& piece : pieces) bytes += piece.size();
    if (queued_bytes() + bytes > limits_.drop_peer_bytes) {
      abort(fmt::format("the peer does not read: {} bytes wait for it, the limit is {}",
                        queued_bytes() + bytes, limits_.drop_peer_bytes));
      return kj::cp(write_failure_);
    }
    for (const auto& piece : pieces) queued_.insert(queued_.end(), piece.begin(), piece.end());
    unsent_->set(queued_bytes());
    may_wait ? promise_flush() : schedule_flush();
    if (queued_bytes() > limits_.stall_bytes) watch_for_stall();
    return nullptr;
  }

  // After all that was queued: a FIN must not overtake it.
  void shutdown_write() {
    if (std::exchange(write_shutdown_, true)) return;
    schedule_flush();
  }

  kj::Promise<void> when_queued_below(size_t bytes) {
    KJ_IF_MAYBE (failure, write_failure_) {
      return kj::cp(*failure);
    }
    if (queued_bytes() < bytes) return kj::READY_NOW;
    auto paf = kj::newPromiseAndFulfiller<void>();
    drain_waiters_.push_back({bytes, kj::mv(paf.fulfiller)});
    return kj::mv(paf.promise);
  }

  kj::Promise<void> when_write_disconnected() {
    if (!std::exchange(watches_errors_, true) && lowest().is_open()) {
      // epoll reports error and hang-up (and urgent data, which no peer of ours sends) here, also
      // while nobody reads.
      lowest().async_wait(asio::socket_base::wait_error,
                          [self = this->shared_from_this()](error_code error) {
                            if (error != asio::error::operation_aborted)
                              self->fail_writes("the peer has closed the connection");
                          });
    }
    return write_disconnected_.addBranch();
  }

  void shutdown_read() {
    error_code ignored;
    lowest().shutdown(asio::socket_base::shutdown_receive, ignored);
  }

  // ---- ending

  // Fails all that waits and closes at once.
  void abort(const std::string& why) {
    fail_writes(why);
    fail_reads(lost(why));
    close();
  }

  // The stream is gone; queued bytes may still leave.
  void release() {
    released_ = true;
    drain_waiters_.clear();
    // This object may outlive the KJ loop, so nothing of KJ's may stay in it.
    write_disconnected_fulfiller_->fulfill();
    write_disconnected_fulfiller_ = nullptr;
    write_disconnected_ = nullptr;
    if (!flushing_ || write_failure_ != nullptr) return close();
    linger_timer_.expires_after(std::chrono::milliseconds(ByteStream::kLingerMs));
    linger_timer_.async_wait([weak = this->weak_from_this()](error_code error) {
      if (auto self = weak.lock(); self && !error) self->close();
    });
  }

 private:
  struct Wanted {
    std::byte* begin = nullptr;
    size_t min_bytes = 0, max_bytes = 0;
    size_t done = 0;
    ByteStream::Sink* sink = nullptr;  // null: nobody reads
  };
  struct DrainWaiter {
    size_t below_bytes;
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
  };

  auto& lowest() { return socket_->lowest_layer(); }

  // Hands over what was read ahead, and asks for more while the reader lacks its minimum.
  void serve_reader() {
    if (wanted_.sink == nullptr) return;
    const size_t bytes = std::min(wanted_.max_bytes - wanted_.done, ahead_end_ - ahead_begin_);
    if (bytes > 0) std::memcpy(wanted_.begin + wanted_.done, ahead_.data() + ahead_begin_, bytes);
    wanted_.done += bytes;
    ahead_begin_ += bytes;
    if (wanted_.done >= wanted_.min_bytes || end_of_stream_) {
      std::exchange(wanted_.sink, nullptr)->filled(wanted_.done);
    } else if (read_failure_ != nullptr) {
      std::exchange(wanted_.sink, nullptr)->lost(kj::cp(KJ_ASSERT_NONNULL(read_failure_)));
    } else if (!std::exchange(reading_, true)) {
      socket_->async_read_some(asio::buffer(ahead_),
                               [self = this->shared_from_this()](error_code error, size_t bytes) {
                                 self->on_read(error, bytes);
                               });
    }
  }

  void on_read(error_code error, size_t bytes) {
    reading_ = false;
    ahead_begin_ = 0;
    ahead_end_ = bytes;
    if (is_end_of_stream(error))
      end_of_stream_ = true;
    else if (error)
      return fail_reads(lost(error));
    serve_reader();
  }

  void fail_reads(kj::Exception exception) {
    if (read_failure_ == nullptr) read_failure_ = kj::mv(exception);
    serve_reader();
  }

  void schedule_flush() {
    if (std::exchange(flushing_, true)) return;
    // Asio runs this when KJ's queue is empty: by then all writes of this turn are queued.
    asio::post(socket_->get_executor(), [self = this->shared_from_this()] { self->send_some(); });
  }

  void promise_flush() {
    if (flushing_ || std::exchange(flush_promised_, true)) return;
    late_writes_.add([weak = this->weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      self->flush_promised_ = false;
      if (!self->queued_.empty()) self->schedule_flush();
    });
  }

  void send_some() {
    if (write_failure_ != nullptr) return finish_flush();
    if (sent_ == sending_.size()) {
      sending_.clear();
      if (sending_.capacity() > kKeptBufferBytes) sending_ = {};
      sent_ = 0;
      std::swap(sending_, queued_);
    }
    if (sending_.empty()) return finish_flush();
    socket_->async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                              [self = this->shared_from_this()](error_code error, size_t bytes) {
                                self->on_sent(error, bytes);
                              });
  }

  void on_sent(error_code error, size_t bytes) {
    sent_ += bytes;
    total_sent_ += bytes;
    if (error) fail_writes("connection lost: " + error.message());
    unsent_->set(queued_bytes());
    wake_drained();
    send_some();
  }

  void finish_flush() {
    flushing_ = false;
    error_code ignored;
    if (write_shutdown_) lowest().shutdown(asio::socket_base::shutdown_send, ignored);
    if (released_) close();
  }

  void wake_drained() {
    std::erase_if(drain_waiters_, [&](DrainWaiter& waiter) {
      if (queued_bytes() >= waiter.below_bytes) return false;
      waiter.fulfiller->fulfill();
      return true;
    });
  }

  // Reads go on: the peer may have said why before it closed.
  void fail_writes(const std::string& why) {
    if (write_failure_ != nullptr) return;
    write_failure_ = lost(why);
    queued_ = {};
    for (auto& waiter : std::exchange(drain_waiters_, {})) waiter.fulfiller->reject(lost(why));
    if (!released_) write_disconnected_fulfiller_->fulfill();
  }

  // Armed only while much is queued, so ordinary traffic pays for no timer.
  void watch_for_stall() {
    if (std::exchange(watches_stall_, true)) return;
    stall_timer_.expires_after(std::chrono::milliseconds(limits_.write_stall_timeout_ms));
    stall_timer_.async_wait(
        [weak = this->weak_from_this(), enough = total_sent_ + least_taken()](error_code error) {
          auto self = weak.lock();
          if (!self || error) return;
          self->watches_stall_ = false;
          if (self->queued_bytes() <= self->limits_.stall_bytes) return;
          if (self->total_sent_ >= enough) return self->watch_for_stall();
          self->abort(fmt::format("the peer does not read: {} bytes have waited for {} ms",
                                  self->queued_bytes(), self->limits_.write_stall_timeout_ms));
        });
  }

  uint64_t least_taken() const {
    return std::clamp<uint64_t>(queued_bytes() / kLeastTakenPart, 1, kMostToTakeBytes);
  }

  void close() {
    error_code ignored;
    lowest().close(ignored);
    stall_timer_.cancel();
    linger_timer_.cancel();
  }

  std::unique_ptr<Socket> socket_;
  const RpcLimits limits_;

  Wanted wanted_;
  bool reading_ = false;
  bool end_of_stream_ = false;
  kj::Maybe<kj::Exception> read_failure_;
  std::array<std::byte, kReadAheadBytes> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;

  std::vector<kj::byte> queued_, sending_;
  size_t sent_ = 0;  // of sending_
  uint64_t total_sent_ = 0;
  const std::shared_ptr<Unsent> unsent_ = std::make_shared<Unsent>();
  bool flushing_ = false;
  bool flush_promised_ = false;
  bool write_shutdown_ = false;
  bool released_ = false;
  bool watches_errors_ = false;
  bool watches_stall_ = false;
  kj::Maybe<kj::Exception> write_failure_;
  std::vector<DrainWaiter> drain_waiters_;
  kj::ForkedPromise<void> write_disconnected_ = nullptr;
  kj::Own<kj::PromiseFulfiller<void>> write_disconnected_fulfiller_;
  LateWrites& late_writes_;
  asio::steady_timer stall_timer_, linger_timer_;
};

// A read as a promise; dropped, it ends.
template <class Socket>
class Read final : public ByteStream::Sink {
 public:
  Read(kj::PromiseFulfiller<size_t>& fulfiller, Connection<Socket>& connection, void* buffer,
       size_t min_bytes, size_t max_bytes)
      : fulfiller_(fulfiller), connection_(connection.shared_from_this()) {
    connection_->fill(buffer, min_bytes, max_bytes, *this);
  }
  ~Read() {
    if (!told_) connection_->stop_filling();
  }

  void filled(size_t bytes) override {
    told_ = true;
    fulfiller_.fulfill(kj::mv(bytes));
  }
  void lost(kj::Exception&& why) override {
    told_ = true;
    fulfiller_.reject(kj::mv(why));
  }

 private:
  kj::PromiseFulfiller<size_t>& fulfiller_;
  std::shared_ptr<Connection<Socket>> connection_;
  bool told_ = false;
};

template <class Socket>
class AsioStream final : public ByteStream {
 public:
  AsioStream(std::unique_ptr<Socket> socket, const RpcLimits& limits)
      : connection_(std::make_shared<Connection<Socket>>(std::move(socket), limits)) {}
  ~AsioStream() noexcept(false) { connection_->release(); }

  kj::Promise<size_t> tryRead(void* buffer, size_t min_bytes, size_t max_bytes) override {
    return kj::newAdaptedPromise<size_t, Read<Socket>>(*connection_, buffer, min_bytes, max_bytes);
  }
  void fill(void* buffer, size_t min_bytes, size_t max_bytes, Sink& sink) override {
    connection_->fill(buffer, min_bytes, max_bytes, sink);
  }
  void stop_filling() override { connection_->stop_filling(); }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    const auto piece = kj::arrayPtr(static_cast<const kj::byte*>(buffer), size);
    return write(kj::arrayPtr(&piece, 1));
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    KJ_IF_MAYBE (failure, connection_->put(pieces, false)) {
      return kj::mv(*failure);
    }
    return kj::READY_NOW;
  }
  kj::Maybe<kj::Exception> put(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces,
                               bool may_wait) override {
    return connection_->put(pieces, may_wait);
  }
  kj::Promise<void> whenWriteDisconnected() override {
    return connection_->when_write_disconnected();
  }
  void shutdownWrite() override { connection_->shutdown_write(); }
  void abortRead() override { connection_->shutdown_read(); }
  size_t queued_bytes() const override { return connection_->queued_bytes(); }
  const std::shared_ptr<Unsent>& unsent() const override { return connection_->unsent(); }
  kj::Promise<void> when_queued_below(size_t bytes) override {
    return connection_->when_queued_below(bytes);
  }
  std::weak_ptr<Connection<Socket>> watched() const { return connection_; }

 private:
  std::shared_ptr<Connection<Socket>> connection_;
};

}  // namespace

kj::Own<ByteStream> make_stream(std::unique_ptr<PlainSocket> socket, const RpcLimits& limits) {
  return kj::heap<AsioStream<PlainSocket>>(std::move(socket), limits);
}

kj::Own<ByteStream> make_stream(std::unique_ptr<TlsSocket> socket, TlsIdentity& tls,
                                const RpcLimits& limits) {
  SSL* const native = socket->native_handle();
  auto stream = kj::heap<AsioStream<TlsSocket>>(std::move(socket), limits);
  tls.watch(native, [weak = stream->watched()](const std::string& why) {
    const auto connection = weak.lock();
    if (connection && !why.empty()) connection->abort(why);
    return connection != nullptr;
  });
  return stream;
}

}  // namespace tierpilot
