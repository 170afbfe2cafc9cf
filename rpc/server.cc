#include "rpc/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "rpc/error.h"
#include "rpc/handshakes.h"
#include "rpc/log_limiter.h"
#include "rpc/session.h"
#include "rpc/sockets.h"

namespace tierpilot {
namespace {

constexpr int kAcceptsPerTurn = 16;
constexpr int64_t kAcceptPauseMs = 100;

std::string describe(const Peer& peer) {
  if (peer.transport == "unix") return fmt::format("{} pid {}", peer.name, peer.pid.value_or(0));
  return fmt::format("{} at {}", peer.name, peer.address);
}

}  // namespace

struct RpcServer::Impl final : kj::TaskSet::ErrorHandler {
  using Sessions = std::map<uint64_t, std::unique_ptr<Session>>;

  Impl(EventLoop& loop, ListeningSocket socket, Tls tls, const RpcLimits& limits,
       Bootstrap bootstrap)
      : loop(loop),
        socket(std::move(socket)),
        tls(std::move(tls)),
        limits(limits),
        bootstrap(std::move(bootstrap)),
        frame_memory(loop, limits.max_begun_bytes, limits.frame_stall_ms),
        handshakes(loop, this->tls, limits) {
    watch();
  }
  ~Impl() {
    loop.unwatch(socket.fd.get());
    remove_socket_file(socket);
  }

  void watch() {
    loop.watch_readable(socket.fd.get(), [this] { accept_some(); });
  }

  void accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      if (tls && !handshakes.may_begin()) return pause_accepting();
      UniqueFd fd(::accept4(socket.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) return accept_failed(errno);
      if (is_full() && longest_idle(any) == sessions.end()) {
        reject_peer(refusal());
        continue;
      }
      tasks.add(
          kj::evalNow([&] {
            return tls ? handshakes.begin(std::move(fd))
                       : welcome(loop, std::move(fd), tls, limits);
          }).then([this](Channel channel) {
              start(kj::mv(channel));
            }).catch_([this](kj::Exception&& error) { reject_peer(to_error(error).message); }));
    }
  }

  bool is_full() const { return sessions.size() >= limits.max_connections; }
  std::string refusal() const {
    return fmt::format("refused: {} connections are open", limits.max_connections);
  }

  static bool any(const Session& /*session*/) { return true; }

  // Of those that may be closed, if one has been idle for long enough.
  template <class Filter>
  Sessions::iterator longest_idle(const Filter& may_be) {
    auto longest = sessions.end();
    if (limits.spare_idle_ms <= 0) return longest;
    int64_t longest_ns = system_clock().boot_ns() - limits.spare_idle_ms * 1'000'000;
    for (auto it = sessions.begin(); it != sessions.end(); ++it) {
      const auto since_ns = it->second->idle_since_ns();
      if (!since_ns || *since_ns > longest_ns || !may_be(*it->second)) continue;
      longest_ns = *since_ns;
      longest = it;
    }
    return longest;
  }

  template <class Filter>
  bool spare_one(const Filter& may_be) {
    const auto spare = longest_idle(may_be);
    if (spare == sessions.end()) return false;
    warn(fmt::format("{} connections are open: the one that was idle longest, {}, is closed",
                     sessions.size(), describe(spare->second->peer())));
    end(spare->first);
    return true;
  }

  void end(uint64_t id) {
    const auto found = sessions.find(id);
    if (found == sessions.end()) return;
    const auto use = peers.find(found->second->peer().name);
    if (--use->second->connections == 0) peers.erase(use);
    sessions.erase(found);
  }

  // Whoever has many must leave some to the others.
  bool has_room_for(const std::string& peer) {
    const auto use = peers.find(peer);
    return use == peers.end() || use->second->connections < limits.max_connections_of_peer ||
           spare_one([&](const Session& session) { return session.peer().name == peer; });
  }

  std::shared_ptr<PeerUse> use_of(const std::string& peer) {
    auto& use = peers[peer];
    if (use) return use;
    use = std::make_shared<PeerUse>(frame_memory);
    use->questions.most = limits.max_open_questions_of_peer;
    use->questions.on_excess = [this, peer] {
      if (std::exchange(has_excess, true)) return;
      tasks.add(kj::evalLater([this, peer] {
        has_excess = false;
        end_most_asking(peer);
      }));
    };
    return use;
  }

  // Until what the peer has open on the others is few enough.
  void end_most_asking(const std::string& peer) {
    for (auto use = peers.find(peer); use != peers.end(); use = peers.find(peer)) {
      const size_t open = use->second->questions.count;
      if (open <= limits.max_open_questions_of_peer) return;
      const auto most = std::max_element(
          sessions.begin(), sessions.end(), [&](const auto& one, const auto& other) {
            return questions_of(peer, *one.second) < questions_of(peer, *other.second);
          });
      warn(fmt::format(
          "{} dropped: {} questions are open on all connections of {}, whose answers "
          "were never let go of, the limit is {}, and on this one are most",
          describe(most->second->peer()), open, peer, limits.max_open_questions_of_peer));
      end(most->first);
    }
  }
  static size_t questions_of(const std::string& peer, const Session& session) {
    return session.peer().name == peer ? 1 + session.open_questions() : 0;
  }

  void accept_failed(int error) {
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
    // The connection stays in the backlog and the socket readable: without a pause this would spin.
    warn(fmt::format("cannot accept: {}", fail_errno(error, "accept").value().message));
    pause_accepting();
  }

  // Whoever connects meanwhile waits in the kernel.
  void pause_accepting() {
    loop.unwatch(socket.fd.get());
    tasks.add(loop.after_ms(kAcceptPauseMs).then([this] { watch(); }));
  }

  void start(Channel channel) {
    const std::string name = describe(channel.peer), peer = channel.peer.name;
    if (!has_room_for(peer))
      return reject_peer(
          fmt::format("{} refused: it has {} connections", name, limits.max_connections_of_peer));
    if (is_full() && !spare_one(any)) return reject_peer(fmt::format("{} {}", name, refusal()));
    const uint64_t id = next_id++;
    channel.stream->unsent()->count_in(unsent);
    auto exported = make_bootstrap(channel);
    const auto use = use_of(peer);
    auto session = std::make_unique<Session>(
        loop, kj::mv(channel), limits, capnp::rpc::twoparty::Side::SERVER, kj::mv(exported),
        [this, name](const Error& error) { failed(name, error); }, use);
    tasks.add(session->on_disconnect().then([this, id] { end(id); }));
    sessions.emplace(id, std::move(session));
    ++use->connections;
  }

  capnp::Capability::Client make_bootstrap(const Channel& channel) {
    capnp::Capability::Client made = nullptr;
    const auto make = [&] { made = bootstrap(channel.peer, channel.stream->unsent()); };
    KJ_IF_MAYBE (error, kj::runCatchingExceptions(make)) {
      reject_peer(describe(channel.peer) + " refused: " + to_error(*error).message);
      return kj::cp(*error);  // a capability whose calls fail with it
    }
    return made;
  }

  void failed(const std::string& name, const Error& error) {
    if (error.code != ErrorCode::kUnreachable) ++rejected_frames;
    warn(fmt::format("{} dropped: {}", name, error.message));
  }

  void reject_peer(const std::string& why) {
    ++rejected_peers;
    warn(why);
  }

  void warn(const std::string& text) {
    uint64_t suppressed = 0;
    if (!limiter.admit(suppressed)) return;
    spdlog::warn("{}: {}{}", socket.address.to_string(), text,
                 suppressed ? fmt::format(" ({} more such lines left out)", suppressed) : "");
  }

  void taskFailed(kj::Exception&& exception) override { warn(to_error(exception).message); }

  EventLoop& loop;
  const ListeningSocket socket;
  const Tls tls;
  const RpcLimits limits;
  const Bootstrap bootstrap;
  LogLimiter limiter;
  uint64_t rejected_frames = 0;
  uint64_t rejected_peers = 0;
  uint64_t next_id = 0;
  FrameMemory frame_memory;
  Handshakes handshakes;
  bool has_excess = false;
  const std::shared_ptr<Unsent> unsent = std::make_shared<Unsent>();
  std::map<std::string, std::shared_ptr<PeerUse>> peers;  // by name
  Sessions sessions;
  kj::TaskSet tasks{*this};
};

Result<std::unique_ptr<RpcServer>> RpcServer::listen(EventLoop& loop, const Address& address,
                                                     const Tls& tls, const RpcLimits& limits,
                                                     Bootstrap bootstrap) {
  const bool secured = address.kind == Address::Kind::kTls;
  if (secured && !tls)
    return fail(ErrorCode::kInvalid, fmt::format("cannot listen on {}: certificate, key and "
                                                 "authority are needed",
                                                 address.to_string()));
  auto socket = listen_on(address);
  if (!socket) return tl::unexpected(socket.error());
  return std::unique_ptr<RpcServer>(new RpcServer(std::make_unique<Impl>(
      loop, std::move(*socket), secured ? tls : nullptr, limits, std::move(bootstrap))));
}

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RpcServer::~RpcServer() = default;

Address RpcServer::address() const {
  return impl_->socket.address;
}
size_t RpcServer::connections() const {
  return impl_->sessions.size();
}
const std::shared_ptr<Unsent>& RpcServer::unsent() const {
  return impl_->unsent;
}
uint64_t RpcServer::rejected_frames() const {
  return impl_->rejected_frames;
}
uint64_t RpcServer::rejected_peers() const {
  return impl_->rejected_peers;
}

}  // namespace tierpilot
