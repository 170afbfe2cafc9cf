// The coordinator's end of a node's connection, as its RPC services have it: calls down with their
// answers, updates up with what reached the disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "coordinator/service/core.h"
#include "daemon/agent/node/model.h"
#include "tests/dst/judge/judge.h"
#include "tests/dst/network.h"
#include "tests/dst/versions.h"

namespace tierpilot::dst {

// What a daemon can be asked. Called as messages arrive there.
class NodeCalls {
 public:
  virtual ~NodeCalls() = default;
  // Of rank 0 of a gang: the port at which all meet.
  virtual Result<uint16_t> start(const Assignment& assignment) = 0;
  virtual void cancel(AttemptId attempt, const std::string& reason) = 0;
  virtual void create(const std::string& name, uint64_t bytes,
                      std::function<void(Result<ReplicaChange>)> done) = 0;
  virtual void drop(const std::string& name, uint64_t below) = 0;
  virtual void discard(const DatasetId& id) = 0;
  virtual void set_home(const DatasetId& id, bool home) = 0;
  virtual void keep(const DatasetNeed& need, std::function<void(Status)> done) = 0;
  virtual CopyCheck verify(const DatasetId& id) = 0;
  virtual Result<uint32_t> set_share(AttemptId attempt, uint32_t milli) = 0;
  virtual void tell_job(AttemptId attempt, const JobAdvice& advice) = 0;
};

struct Registration {
  NodeInfo info;
  std::vector<std::pair<std::string, ReplicaState>> replicas;
  std::set<AttemptId> live;
};
// What running tasks with shares did.
using JobReports = std::vector<std::pair<AttemptId, JobPoint>>;
// That are to get no new work, and why.
using UnhealthyUnits = std::map<std::string, std::string>;
struct NodeStatus {
  int64_t sent_ns = 0;  // of the machine's boot clock
  JobReports jobs;
  UnhealthyUnits unhealthy;
};
struct UpdateAnswer {
  uint32_t lease_ms = 0;
  uint64_t acknowledged = 0;
  std::vector<AttemptId> released;
};

class Link final : public NodeLink {
 public:
  // `chance` repeats some calls that may be repeated.
  Link(ConnectionPtr connection, NodeCalls& node, Random& chance, Judge& judge, const Loop& loop)
      : connection_(std::move(connection)),
        node_(node),
        chance_(chance),
        judge_(judge),
        loop_(loop) {}

  void start(const Assignment& assignment, Started done) override;
  void cancel(AttemptId attempt, const std::string& reason) override;
  void create_dataset(const std::string& name, const DatasetSource& source,
                      std::function<void(Result<DatasetVersion>)> done) override;
  void drop_dataset(const std::string& name, uint64_t below_version) override;
  void discard_version(const DatasetVersion& what) override;
  void set_home(const DatasetVersion& what, bool home) override;
  void keep_dataset(const DatasetNeed& need, std::function<void(Status)> done) override;
  void verify_dataset(const DatasetVersion& what,
                      std::function<void(Result<CopyCheck>)> done) override;
  void set_share(AttemptId attempt, uint32_t milli_units, Shared done) override;
  void tell_job(AttemptId attempt, const JobAdvice& advice) override;
  void release(AttemptId attempt) override { released_.push_back(attempt); }

  std::vector<AttemptId> take_released() { return std::exchange(released_, {}); }
  // Nobody answers any more.
  void closed();

 private:
  using Fail = std::function<void(const Error&)>;
  uint64_t wait(Fail fail);
  bool answered(uint64_t call) { return waiting_->erase(call) > 0; }

  ConnectionPtr connection_;
  NodeCalls& node_;
  Random& chance_;
  Judge& judge_;
  const Loop& loop_;
  const SavedWork::Connection identity_ = std::make_shared<const int>();
  std::vector<AttemptId> released_;
  std::shared_ptr<std::map<uint64_t, Fail>> waiting_ = std::make_shared<std::map<uint64_t, Fail>>();
  uint64_t calls_ = 0;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Ended = std::function<void(AttemptId)>;  // a node's report of an end is on disk
  using Answer = std::function<void(Result<UpdateAnswer>)>;

  Session(Core& core, Loop& loop, LifePtr life, std::shared_ptr<Link> link,
          Membership::Ticket ticket, Ended ended)
      : core_(core),
        loop_(loop),
        life_(std::move(life)),
        link_(std::move(link)),
        ticket_(std::move(ticket)),
        ended_(std::move(ended)) {}

  void update(const std::vector<agent::Event>& events, const NodeStatus& status, Answer answer);
  void closed();

 private:
  struct Progress;
  void apply(const agent::Event& event, int64_t sent_ns, const std::shared_ptr<Progress>& progress);
  void written(const std::shared_ptr<Progress>& progress, uint64_t sequence, const Status& status);
  void tell(const std::shared_ptr<Progress>& progress);

  Core& core_;
  Loop& loop_;
  LifePtr life_;
  std::shared_ptr<Link> link_;
  Membership::Ticket ticket_;
  Ended ended_;
  uint64_t acknowledged_ = 0;
};

ReplicaState to_state(const ReplicaChange& change);

}  // namespace tierpilot::dst
