#include "tests/dst/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::dst {
namespace {

constexpr int64_t kFirstRetryMs = 100, kLongestRetryMs = 5'000;
constexpr int64_t kAnswerTimeoutNs = 10 * kSecond;
constexpr int64_t kFlushNs = 3 * kSecond;
constexpr int64_t kPollNs = 20 * kMs;

ServeItem to_item(const DatasetNeed& need) {
  return {need.dataset, need.version, need.bytes, need.write, need.sources, need.digest};
}

agent::Assignment to_agent(const Assignment& from) {
  agent::Assignment to;
  to.attempt = {from.attempt.task, from.attempt.attempt};
  to.argv = from.spec.argv;
  to.units = from.spec.units;
  to.swap_room_bytes = from.spec.swap_room_bytes;
  for (const auto& need : from.datasets) {
    to.datasets.push_back(to_item(need));
    if (need.is_checkpoint) to.checkpoint = need.dataset;
  }
  to.reckoning = from.reckoning;
  to.place_s = from.place_s;
  to.rank = from.rank;
  if (const auto& share = from.share)
    to.part = agent::UnitPart{share->unit, share->milli, share->memory_bytes, 0};
  return to;
}

std::vector<agent::SharedUnit> to_agent(const SharedUnits& from) {
  std::vector<agent::SharedUnit> to;
  for (const auto& unit : from) {
    std::vector<int> cpus{2, 3};
    cpus.resize(static_cast<size_t>(unit.cores));
    to.push_back({std::move(cpus), unit.gpu});
  }
  return to;
}

// Only who is not understood is refused for what it is, and is told what to update.
bool is_for_its_version(Judge& judge, int node, Version version, const Error& error) {
  const bool skewed = error.code == ErrorCode::kInvalid;
  if (skewed && (understands_today(version) || error.message.find("update") == std::string::npos))
    judge.violated("skew", fmt::format("n{} runs {} and is refused: {}", node + 1,
                                       program_of(version).label(), error.message));
  return skewed;
}

}  // namespace

Daemon::Daemon(Surroundings surroundings)
    : at_(std::move(surroundings)),
      predecessors_(at_.instances),
      pool_(at_.shelf,
            {at_.loop, at_.judge, at_.random, at_.node, life_, at_.keeps_old_home, at_.remote,
             at_.suspect, at_.lost, [this](const ReplicaChange& change) { events_.add(change); },
             at_.at_commit_step, at_.disk_fails, at_.disk_is_full, at_.half_synced}),
      warden_({at_.loop, at_.clock, at_.judge, at_.random, at_.node, at_.machine, life_, at_.ends,
               at_.notices_pauses, at_.refuses_starts,
               [this](AttemptId attempt) { tasks_.started(attempt, 1000); },
               [this](AttemptId attempt, agent::ExitReport report) {
                 tasks_.exited(attempt, std::move(report));
               },
               at_.leased, at_.end_kept,
               [this](const agent::Assignment& assignment) { savers_.began(assignment); },
               [this](AttemptId attempt) { savers_.asked_to_end(attempt); }, at_.disk_fails,
               at_.gpu_is_lost, at_.swap_tiers}),
      savers_({at_.loop, at_.judge, at_.random, life_, pool_, warden_,
               [this](agent::EventBody body) { events_.add(std::move(body)); }}),
      events_([this] {
        if (!idle_ || stuck_ || !session_) return;
        later(0, [this, timer = heartbeat_] {
          if (timer == heartbeat_ && idle_) update();
        });
      }),
      tasks_({.cpus = {0, 1},
              .units = kUnits,
              .swap_room_bytes = offered_bytes(at_.swap_tiers),
              .shared_units = to_agent(at_.shared_units)},
             pool_, warden_, at_.clock,
             [this](agent::EventBody body) { events_.add(std::move(body)); }),
      leasing_({at_.loop, at_.clock, life_, warden_, tasks_}),
      backoff_(kFirstRetryMs, kLongestRetryMs, at_.instance) {
  at_.instances.push_back(at_.instance);
  if (at_.tells_kept_ends) tasks_.restore({at_.ends.begin(), at_.ends.end()});
}

Result<uint16_t> Daemon::start(const Assignment& assignment) {
  const auto program = program_of(at_.version);
  if (!understands_today(at_.version) || (assignment.rank && !program.can(kGangFeature)) ||
      (assignment.share && !program.can(kShareFeature)) ||
      (assignment.spec.swap_room_bytes > 0 && !program.can(kSwapRoomFeature)))
    at_.judge.violated("skew",
                       fmt::format("n{} runs {} and is given {}", at_.node + 1, program.label(),
                                   assignment.rank    ? "a rank"
                                   : assignment.share ? "a share"
                                                      : "a task"));
  if (auto taken = tasks_.start(to_agent(assignment)); !taken) return tl::unexpected(taken.error());
  return tasks_.attempts().master_port({assignment.attempt.task, assignment.attempt.attempt});
}

CopyCheck Daemon::verify(const DatasetId& id) {
  const auto check = pool_.verify(id);
  return {std::string(copy_state_name(check.fast)), std::string(copy_state_name(check.slow))};
}

void Daemon::cancel(AttemptId attempt, const std::string& reason) {
  tasks_.cancel({attempt.task, attempt.attempt}, reason);
}

void Daemon::create(const std::string& name, uint64_t bytes,
                    std::function<void(Result<ReplicaChange>)> done) {
  pool_.create(name, bytes, std::move(done));
}

void Daemon::keep(const DatasetNeed& need, std::function<void(Status)> done) {
  pool_.keep(to_item(need), std::move(done));
}

void Daemon::connect() {
  leasing_.end_lapsed();
  const bool there = at_.coordinator.up() && at_.network.reaches(at_.node, at_.node);
  if (!there) return retry(false);
  connection_ = at_.network.connect(at_.node, life_, at_.coordinator.life());
  connection_->on_closed_at_node = [this] { retry(false); };
  register_node();
}

void Daemon::register_node() {
  auto what = std::make_shared<Registration>();
  what->info = describe_node(fmt::format("n{}", at_.node + 1), at_.instance, predecessors_, kUnits,
                             at_.shared_units, offered_bytes(at_.swap_tiers), at_.version);
  const auto replicas = pool_.replicas();
  events_.registered(replicas);
  for (const auto& replica : replicas) what->replicas.emplace_back(replica.name, to_state(replica));
  for (const auto attempt : tasks_.attempts().live())
    what->live.insert({attempt.task, attempt.attempt});
  const int64_t sent_ns = at_.clock.boot_ns();
  const uint64_t call = ++call_;
  waiting_ = true;
  connection_->send(Way::kUp, [this, what, call, sent_ns, connection = connection_] {
    at_.coordinator.register_node(
        connection, *this, *what, [this, call, sent_ns, connection](auto session) {
          connection->send(Way::kDown, [this, call, sent_ns, session] {
            if (call != call_) return;
            waiting_ = false;
            if (!session)
              return retry(is_for_its_version(at_.judge, at_.node, at_.version, session.error()) ||
                           session.error().code == ErrorCode::kConflict);
            session_ = *session;
            backoff_.reset();
            tasks_.registered();
            at_.instances = {at_.instance};
            leasing_.granted(sent_ns, static_cast<uint32_t>(Coordinator::kLeaseMs));
            update();
          });
        });
    at_.coordinator.touched();
  });
  give_up_after(
      leasing_.lease().lease_ms() > 0 ? leasing_.lease().lease_ms() * kMs / 2 : kAnswerTimeoutNs,
      call);
}

// Each computes as much as its share lets it.
JobReports Daemon::job_reports() {
  JobReports reports;
  for (const auto attempt : tasks_.shares().parts()) {
    const auto progress = warden_.progress(attempt);
    if (!progress) continue;
    JobPoint point;
    point.attempt = attempt.attempt;
    point.at_ms = at_.clock.wall_ms();
    point.iteration = progress->iteration;
    point.iterations = progress->iterations;
    point.milli_units = tasks_.shares().of(attempt);
    const auto unit = tasks_.attempts().find(attempt)->assignment.part->unit;
    point.cpu_ns = static_cast<uint64_t>(static_cast<double>(progress->used_ns) *
                                         at_.shared_units.at(unit).cores);
    point.waited_ns = static_cast<uint64_t>(progress->waited_ns);
    point.takes_checkpoints = savers_.takes_checkpoints(attempt) || attempt.task % 2 == 0;
    reports.emplace_back(AttemptId{attempt.task, attempt.attempt}, std::move(point));
  }
  return reports;
}

// As long as it is down its daemon says so, whatever happened before.
UnhealthyUnits Daemon::unhealthy() const {
  UnhealthyUnits units;
  for (const auto& unit : at_.shared_units)
    if (!unit.gpu.empty() && at_.gpu_is_lost(unit.gpu)) units["gpu/" + unit.gpu] = "it is lost";
  return units;
}

void Daemon::update() {
  idle_ = false;
  auto events = std::make_shared<std::vector<agent::Event>>();
  for (const auto* event : events_.batch()) events->push_back(*event);
  events_sent_ = events->size();
  const int64_t sent_ns = at_.clock.boot_ns();
  const uint64_t call = ++call_;
  waiting_ = true;
  connection_->send(Way::kUp,
                    [this, events, status = NodeStatus{sent_ns, job_reports(), unhealthy()}, call,
                     sent_ns, session = session_, connection = connection_] {
                      session->update(*events, status, [=, this](Result<UpdateAnswer> answer) {
                        connection->send(Way::kDown, [this, call, sent_ns, answer, events] {
                          if (call != call_) return;
                          waiting_ = false;
                          if (!answer) return retry(answer.error().code == ErrorCode::kConflict);
                          note_acknowledged(*events, answer->acknowledged);
                          answered(*answer, sent_ns);
                        });
                      });
                      at_.coordinator.touched();
                    });
  give_up_after(leasing_.lease().lease_ms() * kMs / 2, call);
}

void Daemon::note_acknowledged(const std::vector<agent::Event>& sent, uint64_t up_to) {
  for (const auto& event : sent)
    if (const auto* fault = std::get_if<agent::UnitFaultEvent>(&event.body);
        fault && event.sequence <= up_to)
      at_.judge.fault_acknowledged(fmt::format("n{}/{}", at_.node + 1, fault->unit), fault->kind);
}

void Daemon::answered(const UpdateAnswer& answer, int64_t sent_ns) {
  const size_t before = events_.size();
  for (const auto attempt : events_.acknowledge(answer.acknowledged))
    tasks_.exit_acknowledged(attempt);
  stuck_ = events_sent_ > 0 && events_.size() == before;
  for (const auto attempt : answer.released) tasks_.release({attempt.task, attempt.attempt});
  leasing_.end_lapsed();
  leasing_.granted(sent_ns, answer.lease_ms);
  if (!events_.empty() && !stuck_) return update();
  idle_ = true;
  later(leasing_.lease().heartbeat_ms() * kMs, [this, timer = ++heartbeat_] {
    if (timer == heartbeat_ && idle_) update();
  });
}

void Daemon::give_up_after(int64_t timeout_ns, uint64_t call) {
  later(timeout_ns, [this, call] {
    if (call == call_ && waiting_) retry(false);
  });
}

void Daemon::retry(bool lasting) {
  ++call_;
  waiting_ = idle_ = false;
  session_.reset();
  if (connection_) {
    connection_->on_closed_at_node = nullptr;
    connection_->close(Way::kUp);
    connection_.reset();
  }
  leasing_.end_lapsed();
  const int64_t left_ms =
      tasks_.attempts().idle() ? 0 : leasing_.lease().left_ms(at_.clock.boot_ns());
  later((lasting ? backoff_.longest_ms() : backoff_.next_ms(left_ms)) * kMs, [this] { connect(); });
}

void Daemon::stop() {
  if (std::exchange(stopping_, true)) return;
  tasks_.close("the node is stopping");
  wind_down(at_.loop.now_ns() + 13 * kSecond);
}

void Daemon::wind_down(int64_t until_ns) {
  // First its tasks end, then what they came to is told.
  const int64_t now_ns = at_.loop.now_ns();
  if (now_ns >= until_ns || (tasks_.attempts().idle() && events_.empty())) return on_stopped();
  if (tasks_.attempts().idle()) until_ns = std::min(until_ns, now_ns + kFlushNs);
  later(kPollNs, [this, until_ns] { wind_down(until_ns); });
}

void Daemon::die(bool told) {
  life_->alive = false;
  if (connection_) {
    connection_->on_closed_at_node = nullptr;
    connection_->close(Way::kUp, told);
    connection_.reset();
  }
  session_.reset();
  if (told)
    warden_.daemon_died();
  else
    warden_.power_cut();
}

}  // namespace tierpilot::dst
