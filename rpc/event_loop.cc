#include "rpc/event_loop.h"

#include <kj/debug.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "rpc/error.h"

namespace tierpilot {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// KJ turns between looks at Asio: a busy RPC peer must not starve timers and other descriptors. Nor
// must these starve a peer: what Asio brings goes before what waits in KJ's queue, such as the next
// message of a connection that has sent many.
constexpr kj::uint kTurnsBetweenPolls = 2048;

void log_failure(const std::string& what, const kj::Exception& exception) {
  spdlog::error("{}: {}", what, to_error(exception).message);
}

void run_logged(const char* what, const std::function<void()>& callback) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { callback(); })) {
    log_failure(what, *exception);
  }
}

// KJ's own complaints join our log. Lives on the stack of run(), where KJ insists to have it.
class KjLog final : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&& text) override {
    spdlog::warn("kj: {}", text.cStr());
  }
};

class AsioPort final : public kj::EventPort {
 public:
  explicit AsioPort(asio::io_context& io) : io_(io) {}

  bool wait() override {
    io_.run_one();
    return poll();
  }
  bool poll() override {
    io_.poll();
    // KJ looks for kj::Executor's cross-thread work only when this says that wake() was called.
    return woken_.exchange(false);
  }
  void wake() const override {
    woken_ = true;
    asio::post(io_, [] {});
  }

 private:
  asio::io_context& io_;
  mutable std::atomic<bool> woken_{false};
};

// The descriptor is borrowed: it is released, not closed, when the watch ends.
struct Watch : std::enable_shared_from_this<Watch> {
  Watch(asio::io_context& io, int fd, std::function<void()> ready)
      : descriptor(io, fd), ready(std::move(ready)) {}

  void arm() {
    // Arming a wait anew asks epoll anew (EPOLL_CTL_MOD): this makes it level-triggered.
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](error_code error) { self->fire(error); });
  }
  void fire(error_code error) {
    if (ended) return;
    if (error) {
      spdlog::error("watching descriptor {}: {}", descriptor.native_handle(), error.message());
      return;
    }
    run_logged("readable descriptor", ready);
    if (!ended) arm();
  }
  void end() {
    ended = true;
    descriptor.release();
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> ready;
  bool ended = false;
};

// Shared with whoever is posting: stop() may end the loop before its post() has returned. Not
// handed to Asio, as what the work captures may need the KJ loop, which goes before the io_context.
struct PostQueue {
  std::vector<std::function<void()>> take() {
    std::lock_guard lock(mutex);
    return std::exchange(work, {});
  }

  std::mutex mutex;
  std::vector<std::function<void()>> work;
};

struct SignalWatch {
  SignalWatch(asio::io_context& io, std::function<void(int)> handler)
      : signals(io), handler(std::move(handler)) {}

  void arm() {
    signals.async_wait([this](error_code error, int signal) {
      if (error) return;
      run_logged("signal handler", [&] { handler(signal); });
      arm();
    });
  }

  asio::signal_set signals;
  std::function<void(int)> handler;
};

}  // namespace

struct EventLoop::Impl final : kj::TaskSet::ErrorHandler {
  Impl() { wait_scope.setBusyPollInterval(kTurnsBetweenPolls); }

  void taskFailed(kj::Exception&& exception) override { log_failure("task", exception); }

  void run_posted() {
    for (const auto& work : posted->take()) run_logged("posted work", work);
  }

  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running{io.get_executor()};
  AsioPort port{io};
  kj::EventLoop kj_loop{port};
  kj::WaitScope wait_scope{kj_loop};
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> stopped;
  bool stop_asked = false;
  std::map<int, std::shared_ptr<Watch>> watches;
  std::vector<std::unique_ptr<SignalWatch>> signal_watches;
  const std::shared_ptr<PostQueue> posted = std::make_shared<PostQueue>();
  kj::TaskSet tasks{*this};
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}

EventLoop::~EventLoop() {
  for (auto& [fd, watch] : impl_->watches) watch->end();
  impl_->posted->take();
}

asio::io_context& EventLoop::io() {
  return impl_->io;
}
kj::WaitScope& EventLoop::wait_scope() {
  return impl_->wait_scope;
}

void EventLoop::run() {
  KjLog log;
  auto stop = kj::newPromiseAndFulfiller<void>();
  impl_->stopped = kj::mv(stop.fulfiller);
  if (!impl_->stop_asked) stop.promise.wait(impl_->wait_scope);
  impl_->stopped = nullptr;
  impl_->stop_asked = false;
}

void EventLoop::stop() {
  post([this] {
    impl_->stop_asked = true;
    KJ_IF_MAYBE (stopped, impl_->stopped) {
      (*stopped)->fulfill();
    }
  });
}

void EventLoop::post(std::function<void()> work) {
  const auto queue = impl_->posted;
  std::lock_guard lock(queue->mutex);
  queue->work.push_back(std::move(work));
  if (queue->work.size() == 1) asio::post(impl_->io, [impl = impl_.get()] { impl->run_posted(); });
}

kj::Promise<void> EventLoop::after_ms(int64_t delay_ms) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto timer = std::make_shared<asio::steady_timer>(impl_->io, std::chrono::milliseconds(delay_ms));
  timer->async_wait([timer, fulfiller = kj::mv(paf.fulfiller)](error_code) mutable {
    fulfiller->fulfill();  // nobody listens any more if this is a cancellation
  });
  return paf.promise.attach(kj::defer([timer] { timer->cancel(); }));
}

void EventLoop::detach(kj::Promise<void> promise, std::string what) {
  impl_->tasks.add(promise.catch_(
      [what = std::move(what)](kj::Exception&& exception) { log_failure(what, exception); }));
}

void EventLoop::watch_readable(int fd, std::function<void()> ready) {
  unwatch(fd);
  auto watch = std::make_shared<Watch>(impl_->io, fd, std::move(ready));
  impl_->watches[fd] = watch;
  watch->arm();
}

void EventLoop::unwatch(int fd) {
  const auto found = impl_->watches.find(fd);
  if (found == impl_->watches.end()) return;
  found->second->end();
  impl_->watches.erase(found);
}

void EventLoop::on_signal(std::vector<int> signals, std::function<void(int)> handler) {
  auto watch = std::make_unique<SignalWatch>(impl_->io, std::move(handler));
  for (const int signal : signals) watch->signals.add(signal);
  watch->arm();
  impl_->signal_watches.push_back(std::move(watch));
}

}  // namespace tierpilot
