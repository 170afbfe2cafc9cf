#include "tests/dst/coordinator.h"

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>

#include "coordinator/store/db.h"
#include "policies/placement/published/module.h"

namespace tierpilot::dst {
namespace {

// Heuristics alone decide here, at once and by the seed.
std::unique_ptr<PolicyHost> start_host(uint64_t seed) {
  PolicyHostOptions options;
  options.seed = seed;
  options.active = seed % 2 ? "least-loaded" : "locality-greedy";
  PublishedSettings published;
  published.network.width = 16;
  published.network.layers = 1;
  options.modules.put(published_module(published));
  auto host = PolicyHost::start(std::move(options));
  if (!host) throw std::runtime_error(host.error().message);
  return std::move(*host);
}

}  // namespace

Coordinator::Coordinator(Surroundings surroundings)
    : at_(std::move(surroundings)),
      random_(at_.seed, "coordinator"),
      looks_(at_.seed, "looks"),
      clock_(at_.loop, 1 + static_cast<double>(random_.between(-1000, 1000)) * 1e-6),
      life_(std::make_shared<Life>()),
      host_(start_host(at_.seed)) {}

Coordinator::~Coordinator() {
  drop_everything(false);
}

void Coordinator::start() {
  life_ = std::make_shared<Life>();
  const auto post = [this, life = life_](std::function<void()> work) {
    at_.loop.after(random_.between(0, kMs), life, [this, work = std::move(work)] {
      work();
      touched();
    });
  };
  auto store = Store::open(at_.directory, post, Store::Commits::kByCaller);
  if (!store) return start_later(kSecond / 2);
  store_ = std::move(*store);
  const auto after = [this, life = life_](int64_t us, std::function<void()> then) {
    at_.loop.after(us * 1'000, life, [this, then = std::move(then)] {
      then();
      touched();
    });
  };
  CoreSettings settings;
  settings.lease_ms = kLeaseMs;
  settings.max_attempts = 1;  // no fault is a task's own here
  settings.replicas = 1 + at_.seed % 2;
  settings.replica_grace_ms = 2'000;
  settings.preemption_grace_ms = kPreemptionGraceMs;
  core_ = std::make_unique<Core>(settings, clock_, *store_, *host_, Dispatcher::Hooks{post, after});
  auto begun = restore(core_->state);
  if (begun) begun = core_->begin({}, 0);
  if (!begun) {
    drop_everything(false);
    return start_later(kSecond / 2);
  }
  began_ns_ = clock_.boot_ns();
  if (clock_set_ == ClockSet::kBootedSince) clock_set_ = ClockSet::kWritten;
  look_at_all();
  tick();
}

void Coordinator::start_later(int64_t down_ns) {
  // The machine lost its power while it started.
  if (at_.disk.dead()) at_.disk.revive(Disk::End::kPowerCut);
  at_.loop.after(down_ns, nullptr, [this] {
    if (!up()) start();
  });
}

void Coordinator::drop_everything(bool told) {
  life_->alive = false;
  for (const auto& connection : std::exchange(connections_, {}))
    if (const auto open = connection.lock()) {
      open->close(Way::kDown, told);
      open->on_closed_at_coordinator = nullptr;  // it holds what holds the connection
    }
  core_.reset();
  store_.reset();
  committing_ = false;
}

void Coordinator::kill(Disk::End how, int64_t down_ns) {
  if (!up()) return;
  at_.disk.stop();
  drop_everything(how == Disk::End::kKilled);
  at_.disk.revive(how);
  // Nothing tells that it was set.
  if (clock_set_ != ClockSet::kWritten && (how == Disk::End::kPowerCut || !boot_written_))
    at_.judge.promises().clock_is_unsure(at_.loop.now_ns());
  if (how == Disk::End::kPowerCut) {
    clock_.reboot();
    boot_written_ = false;
    clock_set_ = ClockSet::kBootedSince;
  }
  start_later(down_ns);
}

void Coordinator::stop(int64_t down_ns) {
  if (!up()) return;
  core_->lifecycle.writes().flush_noted();
  life_->alive = false;
  while (!at_.disk.dead() && store_->commit_next(true)) {
  }
  drop_everything(true);
  start_later(down_ns);
}

void Coordinator::set_clock_by(int64_t ms) {
  clock_.step_wall(ms);
  if (clock_set_ == ClockSet::kBootedSince)
    at_.judge.promises().clock_is_unsure(at_.loop.now_ns());
  else
    clock_set_ = ClockSet::kUnnoticed;
}

void Coordinator::freeze(int64_t ns) {
  // That has no boot time for as long. One without power has none anyway.
  if (clock_set_ != ClockSet::kBootedSince) clock_set_ = ClockSet::kUnnoticed;
  clock_.stand_still(ns);
  at_.judge.promises().coordinator_stands_still(at_.loop.now_ns(), ns);
  pause(ns);
}

// What a newer one has written is not touched by today's, and that says so.
void Coordinator::refuse_newer_store() {
  constexpr const char* kNewer = "UPDATE settings SET value = value + 1 WHERE key = 'format'";
  constexpr const char* kToday = "UPDATE settings SET value = value - 1 WHERE key = 'format'";
  const auto path = (at_.directory / "tierpilot.db").string();
  auto db = Db::open(path);
  if (!db || !db->execute(kNewer)) return at_.judge.violated("skew", "a store cannot be changed");
  const auto refused = Store::open(
      at_.directory, [](auto) {}, Store::Commits::kByCaller);
  if (refused)
    at_.judge.violated("skew", "a store of a newer format was opened");
  else if (refused.error().message.find("install the newer version") == std::string::npos)
    at_.judge.violated("skew",
                       "a store of a newer format was refused with: " + refused.error().message);
  if (!db->execute(kToday)) at_.judge.violated("skew", "a store that was refused is broken");
}

void Coordinator::downgrade(int64_t down_ns) {
  if (!up()) return;
  kill(Disk::End::kKilled, down_ns);
  if (at_.disk.sound()) refuse_newer_store();
}

void Coordinator::tick() {
  core_->tick();
  if (clock_set_ == ClockSet::kUnnoticed) clock_set_ = ClockSet::kNoticed;
  touched();
  look_at_any();
  at_.loop.after(100 * kMs, life_, [this] { tick(); });
}

void Coordinator::touched() {
  if (!up() || std::exchange(committing_, true)) return;
  const int64_t takes_ns =
      slow_disk_ ? random_.between(50 * kMs, 1'500 * kMs) : random_.between(kMs / 10, 3 * kMs);
  at_.loop.after(takes_ns, life_, [this] { commit(); });
}

void Coordinator::commit() {
  committing_ = false;
  const bool more = store_->commit_next();
  // The machine lost its power meanwhile.
  if (at_.disk.dead()) return kill(Disk::End::kPowerCut, random_.between(50 * kMs, 3 * kSecond));
  if (more) return touched();
  if (clock_set_ == ClockSet::kUnnoticed || !store_->trouble().empty()) return;
  clock_set_ = ClockSet::kWritten;
  boot_written_ = true;
}

void Coordinator::register_node(const ConnectionPtr& connection, NodeCalls& node,
                                const Registration& what,
                                std::function<void(Result<std::shared_ptr<Session>>)> answer) {
  const auto facts = admit_node(what.info);
  if (!facts) return answer(tl::unexpected(facts.error()));
  connections_.push_back(connection);
  auto link = std::make_shared<Link>(connection, node, random_, at_.judge, at_.loop);
  auto ticket = core_->membership.join(*facts, link, what.replicas, what.live);
  if (!ticket) return answer(tl::unexpected(ticket.error()));
  auto session = std::make_shared<Session>(*core_, at_.loop, life_, link, *ticket,
                                           [this](AttemptId attempt) { look_at(attempt.task); });
  connection->on_closed_at_coordinator = [this, session] {
    session->closed();
    touched();
  };
  core_->dispatcher.pump();
  answer(session);
}

void Coordinator::look_at(uint64_t id) {
  const auto task = core_->task(id);
  if (!task) {
    if (task.error().code == ErrorCode::kNotFound && at_.judge.tasks().contains(id))
      at_.judge.violated("lost-submit", fmt::format("task {} was acknowledged, and is gone", id));
    return;
  }
  if (task->rank) return look_at(task->rank->gang);
  if (task->spec.share.promise_ms > 0) {
    auto share = core_->shares.share_of(id);
    if (!share) share = ended_share(core_->state, *task);
    at_.judge.promises().told(*task, share ? share->promise : "");
  }
  if (is_ended(task->state))
    at_.judge.ended(*task);
  else if (at_.judge.has_ended(id))
    at_.judge.violated("undone-end", fmt::format("task {} was told to have ended, and is {} now",
                                                 id, task_state_name(task->state)));
}

void Coordinator::look_at_all() {
  for (const auto& [id, spec] : at_.judge.tasks()) look_at(id);
}

// As a user may at any moment.
void Coordinator::look_at_any() {
  const auto& tasks = at_.judge.tasks();
  if (tasks.empty()) return;
  look_at(std::next(tasks.begin(), looks_.between(0, tasks.size() - 1))->first);
}

}  // namespace tierpilot::dst
