#include "coordinator/service/rpc_node_link.h"

#include <fmt/format.h>

#include "coordinator/service/wire.h"
#include "rpc/digest.h"
#include "rpc/error.h"

namespace tierpilot {

namespace {

// Generous: what does not fit takes a second segment.
capnp::MessageSize size_of(const Assignment& assignment) {
  size_t bytes = 512 + assignment.spec.name.size();
  for (const auto& argument : assignment.spec.argv) bytes += argument.size() + 24;
  for (const auto& [name, value] : assignment.spec.env) bytes += name.size() + value.size() + 48;
  for (const auto& need : assignment.datasets)
    bytes += need.dataset.size() + 96 + need.sources.size() * 64;
  if (const auto& rank = assignment.rank)
    bytes += 128 + rank->place.cpu_units.size() * 4 + rank->place.gpus.size() * 64;
  return {bytes / sizeof(capnp::word), 0};
}

}  // namespace

// A lost connection is told by the session; here it is only one call among many that fail with it.
void RpcNodeLink::send(kj::Promise<void> sent, const char* what) {
  auto told = sent.catch_([](kj::Exception&& e) {
    if (e.getType() != kj::Exception::Type::DISCONNECTED) kj::throwFatalException(kj::mv(e));
  });
  loop_.detach(kj::mv(told), fmt::format("node '{}': {}", node_, what));
}

void RpcNodeLink::start(const Assignment& assignment, Started done) {
  auto request = client_.startRequest(size_of(assignment));
  write_assignment(assignment, request.initAssignment());
  // Unlike the calls below it tells a lost connection as any other failure.
  loop_.detach(
      request.send().then([done](auto&& taken) { done(taken.getMasterPort()); },
                          [done](kj::Exception&& e) { done(tl::unexpected(to_error(e))); }),
      node_);
}

void RpcNodeLink::cancel(AttemptId attempt, const std::string& reason) {
  auto request = client_.cancelRequest();
  write_attempt(attempt, request.initAttempt());
  request.setReason(reason);
  send(request.send().ignoreResult(), "cancel");
}

void RpcNodeLink::create_dataset(const std::string& name, const DatasetSource& source,
                                 std::function<void(Result<DatasetVersion>)> done) {
  auto request = client_.createDatasetRequest();
  request.setName(name);
  write_source(source, request.initSource());
  auto answered = request.send().then(
      [done](auto&& response) {
        const auto replica = response.getReplica();
        done(DatasetVersion{text(replica.getDataset()), replica.getVersion(), replica.getBytes(),
                            read_digest(replica.getDigest())});
      },
      [done](kj::Exception&& e) { done(tl::unexpected(to_error(e))); });
  send(kj::mv(answered), "create dataset");
}

void RpcNodeLink::drop_dataset(const std::string& name, uint64_t below_version) {
  auto request = client_.dropDatasetRequest();
  request.setName(name);
  request.setBelowVersion(below_version);
  send(request.send().ignoreResult(), "drop dataset");
}

void RpcNodeLink::discard_version(const DatasetVersion& what) {
  auto request = client_.dropDatasetRequest();
  request.setName(what.dataset);
  request.setOnlyVersion(what.version);
  write_digest(request.initOnlyDigest(), what.digest);
  send(request.send().ignoreResult(), "discard dataset version");
}

void RpcNodeLink::set_home(const DatasetVersion& what, bool home) {
  auto request = client_.setHomeRequest();
  request.setName(what.dataset);
  request.setVersion(what.version);
  request.setHome(home);
  write_digest(request.initDigest(), what.digest);
  send(request.send().ignoreResult(), "set home");
}

void RpcNodeLink::keep_dataset(const DatasetNeed& need, std::function<void(Status)> done) {
  auto request = client_.keepDatasetRequest();
  write_need(need, request.initNeed());
  loop_.detach(
      request.send().then([done](auto&&) { done({}); },
                          [done](kj::Exception&& e) { done(tl::unexpected(to_error(e))); }),
      node_);
}

void RpcNodeLink::set_share(AttemptId attempt, uint32_t milli_units, Shared done) {
  auto request = client_.setShareRequest();
  write_attempt(attempt, request.initAttempt());
  request.setMilliUnits(milli_units);
  loop_.detach(
      request.send().then([done](auto&& answer) { done(answer.getMilliUnits()); },
                          [done](kj::Exception&& e) { done(tl::unexpected(to_error(e))); }),
      node_);
}

void RpcNodeLink::tell_job(AttemptId attempt, const JobAdvice& advice) {
  auto request = client_.tellJobRequest();
  write_attempt(attempt, request.initAttempt());
  auto out = request.initAdvice();
  if (const auto* now = std::get_if<CheckpointNow>(&advice)) {
    out.setCheckpointNow(now->reason);
  } else if (const auto* every = std::get_if<CheckpointEvery>(&advice)) {
    auto to = out.initCheckpointEvery();
    to.setIntervalMs(static_cast<uint64_t>(every->interval_s * 1e3));
    to.setCostMs(static_cast<uint64_t>(every->cost_s * 1e3));
    to.setFailuresPerHour(every->failures_per_h);
  } else {
    const auto& safe = std::get<CheckpointSafe>(advice);
    auto to = out.initCheckpointSafe();
    to.setIteration(safe.iteration);
    to.setCopies(safe.copies);
  }
  send(request.send().ignoreResult(), "tell a job");
}

void RpcNodeLink::verify_dataset(const DatasetVersion& what,
                                 std::function<void(Result<CopyCheck>)> done) {
  auto request = client_.verifyDatasetRequest();
  request.setDataset(what.dataset);
  request.setVersion(what.version);
  write_digest(request.initDigest(), what.digest);
  loop_.detach(request.send().then(
                   [done](auto&& answer) {
                     done(CopyCheck{text(answer.getFast()), text(answer.getSlow())});
                   },
                   [done](kj::Exception&& e) { done(tl::unexpected(to_error(e))); }),
               node_);
}

}  // namespace tierpilot
