#include "tests/dst/session.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace tierpilot::dst {
namespace {

TaskExit to_exit(const agent::ExitReport& report, int64_t ago_ns) {
  TaskExit exit;
  exit.ago_ms = static_cast<uint64_t>(std::max<int64_t>(ago_ns, 0) / kMs);
  exit.how = report.how;
  exit.reason = report.reason;
  exit.node_fault = report.node_fault;
  if (report.process) exit.code = report.process->exit_code.value_or(0);
  for (const auto& written : report.written)
    exit.written.push_back({written.name, written.version, written.bytes, written.digest});
  return exit;
}

DatasetId id_of(const DatasetVersion& what) {
  return {what.dataset, what.version, what.digest};
}

constexpr double kRepeated = 0.03;

}  // namespace

ReplicaState to_state(const ReplicaChange& change) {
  return {change.version, change.bytes,  change.in_fast, change.in_slow,
          change.home,    change.digest, change.damaged};
}

uint64_t Link::wait(Fail fail) {
  (*waiting_)[++calls_] = std::move(fail);
  return calls_;
}

void Link::closed() {
  const auto waiting = std::exchange(*waiting_, {});
  for (const auto& [call, fail] : waiting)
    fail({ErrorCode::kUnreachable, "the connection was closed"});
}

void Link::start(const Assignment& assignment, Started done) {
  const uint64_t call = wait([done](const Error& error) { done(tl::unexpected(error)); });
  const auto ask = [this, assignment, done, call, connection = connection_] {
    connection->send(Way::kUp, [waiting = waiting_, call, done, taken = node_.start(assignment)] {
      if (waiting->erase(call)) done(taken);
    });
  };
  connection_->send(Way::kDown, ask);
  if (chance_.chance(kRepeated)) connection_->send(Way::kDown, ask);
}

void Link::cancel(AttemptId attempt, const std::string& reason) {
  const bool gives_way = reason.starts_with("preempted: ");
  if (gives_way) judge_.gives_way(attempt.task);
  if (gives_way && judge_.processes().runs(attempt.task, attempt.attempt))
    judge_.saved_work().preempted(attempt, identity_, loop_.now_ns());
  const auto ask = [this, attempt, reason] { node_.cancel(attempt, reason); };
  connection_->send(Way::kDown, ask);
  if (chance_.chance(kRepeated)) connection_->send(Way::kDown, ask);
}

void Link::create_dataset(const std::string& name, const DatasetSource& source,
                          std::function<void(Result<DatasetVersion>)> done) {
  const uint64_t call = wait([done](const Error& error) { done(tl::unexpected(error)); });
  connection_->send(Way::kDown, [this, name, bytes = std::get<ZeroSource>(source).bytes, done, call,
                                 connection = connection_] {
    node_.create(name, bytes, [waiting = waiting_, done, call, connection](auto made) {
      connection->send(Way::kUp, [waiting, done, call, made] {
        if (!waiting->erase(call)) return;
        if (!made) return done(tl::unexpected(made.error()));
        done(DatasetVersion{made->name, made->version, made->bytes, made->digest});
      });
    });
  });
}

void Link::drop_dataset(const std::string& name, uint64_t below_version) {
  connection_->send(Way::kDown, [this, name, below_version] { node_.drop(name, below_version); });
}

void Link::discard_version(const DatasetVersion& what) {
  connection_->send(Way::kDown, [this, id = id_of(what)] { node_.discard(id); });
}

void Link::set_home(const DatasetVersion& what, bool home) {
  connection_->send(Way::kDown, [this, id = id_of(what), home] { node_.set_home(id, home); });
}

void Link::keep_dataset(const DatasetNeed& need, std::function<void(Status)> done) {
  const uint64_t call = wait([done](const Error& error) { done(tl::unexpected(error)); });
  connection_->send(Way::kDown, [this, need, done, call, connection = connection_] {
    node_.keep(need, [waiting = waiting_, done, call, connection](Status kept) {
      connection->send(Way::kUp, [waiting, done, call, kept] {
        if (waiting->erase(call)) done(kept);
      });
    });
  });
}

void Link::verify_dataset(const DatasetVersion& what, std::function<void(Result<CopyCheck>)> done) {
  const uint64_t call = wait([done](const Error& error) { done(tl::unexpected(error)); });
  connection_->send(Way::kDown, [this, id = id_of(what), done, call, connection = connection_] {
    connection->send(Way::kUp, [waiting = waiting_, done, call, check = node_.verify(id)] {
      if (waiting->erase(call)) done(check);
    });
  });
}

void Link::set_share(AttemptId attempt, uint32_t milli_units, Shared done) {
  const uint64_t call = wait([done](const Error& error) { done(tl::unexpected(error)); });
  const auto ask = [this, attempt, milli_units, done, call, connection = connection_] {
    connection->send(
        Way::kUp, [waiting = waiting_, done, call, milli = node_.set_share(attempt, milli_units)] {
          if (waiting->erase(call)) done(milli);
        });
  };
  connection_->send(Way::kDown, ask);
  if (chance_.chance(kRepeated)) connection_->send(Way::kDown, ask);
}

void Link::tell_job(AttemptId attempt, const JobAdvice& advice) {
  if (std::holds_alternative<CheckpointNow>(advice))
    judge_.saved_work().asked(attempt, identity_, loop_.now_ns());
  connection_->send(Way::kDown, [this, attempt, advice] { node_.tell_job(attempt, advice); });
}

struct Session::Progress {
  uint64_t last = 0;
  uint64_t failed = 0;
  size_t open = 0;
  Answer answer;
};

void Session::update(const std::vector<agent::Event>& events, const NodeStatus& status,
                     Answer answer) {
  auto node = core_.membership.renew(ticket_);
  if (!node) return answer(tl::unexpected(node.error()));
  (*node)->fast_free_bytes = (*node)->slow_free_bytes = 1 << 30;
  core_.membership.says_unhealthy(**node, status.unhealthy);
  auto progress = std::make_shared<Progress>();
  progress->answer = std::move(answer);
  ++progress->open;  // not before all of them were looked at
  for (const auto& event : events) apply(event, status.sent_ns, progress);
  Membership::told(**node, events.size());
  for (const auto& [attempt, point] : status.jobs) {
    const auto* task = core_.state.tasks.find(attempt.task);
    if (task && task->node == ticket_.node && task->attempt == attempt.attempt)
      core_.reported(*task, point);
  }
  core_.dispatcher.pump();
  if (--progress->open == 0) return tell(progress);
  const int64_t patience_ms = std::max<int64_t>(core_.state.settings.lease_ms / 8, 50);
  loop_.after(patience_ms * kMs, life_,
              [self = shared_from_this(), progress] { self->tell(progress); });
}

void Session::tell(const std::shared_ptr<Progress>& progress) {
  const auto answer = std::exchange(progress->answer, nullptr);
  if (!answer) return;
  if (progress->open == 0 && progress->last > acknowledged_)
    acknowledged_ =
        progress->failed ? std::max(acknowledged_, progress->failed - 1) : progress->last;
  answer(UpdateAnswer{static_cast<uint32_t>(core_.state.settings.lease_ms), acknowledged_,
                      link_->take_released()});
}

void Session::written(const std::shared_ptr<Progress>& progress, uint64_t sequence,
                      const Status& status) {
  if (!status)
    progress->failed = progress->failed ? std::min(progress->failed, sequence) : sequence;
  if (--progress->open == 0) tell(progress);
}

void Session::apply(const agent::Event& event, int64_t sent_ns,
                    const std::shared_ptr<Progress>& progress) {
  progress->last = std::max(progress->last, event.sequence);
  const auto& node = ticket_.node;
  if (const auto* replica = std::get_if<ReplicaChange>(&event.body)) {
    core_.membership.replica_changed(node, replica->name, to_state(*replica));
  } else if (const auto* served = std::get_if<agent::ServedEvent>(&event.body)) {
    ServedData data;
    data.latency_ns = served->data.latency_ns;
    core_.lifecycle.served(node, served->attempt, data);
  } else if (const auto* started = std::get_if<agent::StartedEvent>(&event.body)) {
    core_.lifecycle.started(node, started->attempt, started->pid, started->cpu_units);
  } else if (const auto* taken = std::get_if<agent::CheckpointedEvent>(&event.body)) {
    core_.checkpoints.measured(node, taken->attempt, taken->checkpoint,
                               {taken->stall_ns, taken->copy_ns});
  } else if (const auto* fault = std::get_if<agent::UnitFaultEvent>(&event.body)) {
    const auto* record = core_.state.registry.find(node);
    if (!record) return;
    ++progress->open;
    core_.gangs.unit_failed(
        node + "/" + fault->unit, fault->kind, fault->detail,
        told_as(record->facts, event.sequence),
        [self = shared_from_this(), progress, sequence = event.sequence](const Status& status) {
          self->written(progress, sequence, status);
        });
  } else {
    const auto& exited = std::get<agent::ExitedEvent>(event.body);
    const auto attempt = exited.attempt;
    ++progress->open;
    core_.lifecycle.exited(
        node, attempt, to_exit(exited.exit, exited.at_ns > 0 ? sent_ns - exited.at_ns : 0),
        [self = shared_from_this(), progress, sequence = event.sequence, attempt](Status status) {
          if (status) self->ended_(attempt);
          self->written(progress, sequence, status);
        });
  }
}

void Session::closed() {
  core_.membership.disconnected(ticket_);
  link_->closed();
}

}  // namespace tierpilot::dst
