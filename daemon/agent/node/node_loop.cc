#include <csignal>
#include <limits>

#include "base/log.h"
#include "daemon/agent/node/node_parts.h"
#include "daemon/agent/node/systemd.h"
#include "rpc/tls/tls_refresh.h"

namespace tierpilot::agent {
namespace {

constexpr int64_t kSweepMs = 600'000;
constexpr int64_t kMeasuringMs = 1'000;
constexpr int64_t kLogBoundMs = 1'000;
constexpr int64_t kRecalibrationMs = 1'000;
constexpr int64_t kPollMs = 20;             // while stopping
constexpr int64_t kKillTimeoutMs = 12'000;  // the executor kills what is left within 10 s
constexpr int64_t kFlushTimeoutMs = 3'000;
constexpr int kBeginAnew = 75;  // EX_TEMPFAIL: systemd starts what failed again

void log_events(PassiveProbe& probe) {
  for (const auto& event : probe.drain_events())
    spdlog::debug("{}: {} pages, {} failed, {} ns, {} ({})",
                  event.kind == PassiveEvent::Kind::kMigration ? "migration" : "reclaim",
                  event.pages, event.pages_failed, event.duration_ns.value_or(0), event.detail,
                  event.command);
}

kj::Promise<void> feed_watchdog(EventLoop& loop, int64_t period_ms) {
  notify_watchdog();
  return loop.after_ms(period_ms).then(
      [&loop, period_ms] { return feed_watchdog(loop, period_ms); });
}

kj::Promise<void> wait_until(EventLoop& loop, std::function<bool()> done, int64_t timeout_ms) {
  if (done() || timeout_ms <= 0) return kj::READY_NOW;
  return loop.after_ms(kPollMs).then([&loop, done = std::move(done), timeout_ms]() mutable {
    return wait_until(loop, std::move(done), timeout_ms - kPollMs);
  });
}

}  // namespace

void Node::Parts::watch() {
  loop.on_signal({SIGTERM, SIGINT}, [this](int) { stop_on_signal(); });
  loop.on_signal({SIGHUP}, [this](int) { refresh(tls); });
  loop.watch_readable(executor->event_fd(), [this] { deliver_exec_events(); });
  if (probe && probe->event_fd() >= 0)
    loop.watch_readable(probe->event_fd(), [this] { log_events(*probe); });
  if (recalibration) {
    loop.watch_readable(recalibration->probe_fd(), [this] {
      if (!recalibration->on_probe()) loop.unwatch(recalibration->probe_fd());
    });
    if (recalibration->uevent_fd() >= 0)
      loop.watch_readable(recalibration->uevent_fd(), [this] { recalibration->on_uevent(); });
    loop.detach(recalibrate(), "measuring again");
  }
  if (const int64_t period_ms = watchdog_period_ms(); period_ms > 0)
    loop.detach(feed_watchdog(loop, period_ms), "watchdog");
  loop.detach(sweep_dirs(kPollMs), "task directories");
  loop.detach(bound_logs(), "logs of running tasks");
}

void Node::Parts::deliver_exec_events() {
  runner->deliver(*tasks);
  if (executor->warden_alive() || stopping) return;
  spdlog::critical("the warden has died and every task with it");
  exit_code = 1;
  stop_now();
}

kj::Promise<void> Node::Parts::sweep_dirs(int64_t delay_ms) {
  return loop.after_ms(delay_ms).then([this] {
    if (const size_t removed = dirs.sweep(tasks->attempts().held(), dirs_clock.now_ms());
        removed > 0)
      spdlog::info("{} old task directories removed", removed);
    return sweep_dirs(dirs.measuring() ? kMeasuringMs : kSweepMs);
  });
}

kj::Promise<void> Node::Parts::bound_logs() {
  return loop.after_ms(kLogBoundMs).then([this] {
    for (const auto attempt : tasks->attempts().held()) dirs.bound_logs(attempt, config.log_bytes);
    return bound_logs();
  });
}

kj::Promise<void> Node::Parts::recalibrate() {
  return loop.after_ms(kRecalibrationMs).then([this] {
    recalibration->tick();
    placement->set_tiers(paging_tiers(topology, calibration));
    return recalibrate();
  });
}

void Node::Parts::stop_on_signal() {
  if (draining || stopping || config.drain_s == 0) return stop_now();
  draining = true;
  tasks->drain("the node is stopping");
  if (tasks->attempts().idle()) return stop_now();
  spdlog::info("stopping: {} tasks run and have {} s to end", tasks->attempts().running(),
               config.drain_s);
  notify_draining(config.drain_s * 1000 + config.cancel_grace_ms + kKillTimeoutMs +
                  kFlushTimeoutMs);
  link->wake();
  loop.detach(
      wait_until(
          loop, [this] { return stopping || tasks->attempts().idle(); }, config.drain_s * 1000)
          .then([this] { stop_now(); }),
      "draining");
}

// All parts know the GPUs from their beginning. Nobody's work is lost for them.
void Node::Parts::begin_anew_with_gpus() {
  if (stopping || draining) return;
  if (!is_service())
    return spdlog::warn("the GPUs' driver answers now: start this daemon anew to use them");
  spdlog::warn(
      "the GPUs' driver answers now: once no task runs, the daemon begins anew to use them");
  tasks->drain("the node begins anew, with its GPUs");
  link->wake();
  loop.detach(wait_until(
                  loop, [this] { return stopping || tasks->attempts().idle(); },
                  std::numeric_limits<int64_t>::max())
                  .then([this] {
                    if (stopping) return;
                    exit_code = kBeginAnew;
                    stop_now();
                  }),
              "waiting to begin anew");
}

void Node::Parts::stop_now() {
  if (stopping) return;
  stopping = true;
  spdlog::info("stopping: {} attempts are cancelled", tasks->attempts().unended());
  notify_stopping();
  tasks->close("the node is stopping");
  loop.detach(wind_down(), "stopping");
}

kj::Promise<void> Node::Parts::wind_down() {
  return wait_until(
             loop, [this] { return tasks->attempts().idle(); },
             config.cancel_grace_ms + kKillTimeoutMs)
      .then([this] {
        return wait_until(
            loop, [this] { return events.empty(); }, kFlushTimeoutMs);
      })
      .then([this]() -> kj::Promise<void> {
        if (!tasks->attempts().idle()) return kj::READY_NOW;
        return link->leave();
      })
      .then([this] { loop.stop(); });
}

}  // namespace tierpilot::agent
