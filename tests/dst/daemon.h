// One life of a node's daemon: the real task table, event stream, lease and backoff, and around
// them what CoordinatorLink does over RPC.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/agent/link/backoff.h"
#include "daemon/agent/link/event_stream.h"
#include "daemon/agent/tasks/task_table.h"
#include "tests/dst/coordinator.h"
#include "tests/dst/leasing.h"
#include "tests/dst/network.h"
#include "tests/dst/pool.h"
#include "tests/dst/savers.h"
#include "tests/dst/sharing.h"
#include "tests/dst/swapping.h"
#include "tests/dst/warden.h"

namespace tierpilot::dst {

// Of its own, which nobody shares.
inline constexpr uint32_t kUnits = 2;

class Daemon final : public NodeCalls {
 public:
  struct Surroundings {
    Loop& loop;
    const MachineClock& clock;
    Judge& judge;
    Network& network;
    Coordinator& coordinator;
    Random& random;
    Shelf& shelf;
    KeptEnds& ends;
    int node = 0;
    uint64_t instance = 0;
    std::vector<uint64_t>& instances;  // of this boot, that the coordinator may know; on disk
    LifePtr machine;
    bool keeps_old_home = false;
    bool notices_pauses = true;
    bool tells_kept_ends = true;
    Version version = Version::kCurrent;
    std::function<bool()> refuses_starts;
    std::function<const Stored*(const std::string&, const DatasetId&)> remote;
    std::function<void(const std::string&, const DatasetId&)> suspect;
    std::function<void(const DatasetId&)> lost;
    std::function<void(int step)> at_commit_step;
    std::function<bool()> disk_fails, disk_is_full;
    std::function<void(const DatasetId&, const Stored&)> half_synced;
    std::function<void(int64_t deadline_ns)> leased;
    std::function<void()> end_kept;
    SharedUnits shared_units;
    std::function<bool(const std::string& gpu)> gpu_is_lost;
    SwapTiers swap_tiers;
  };
  explicit Daemon(Surroundings surroundings);

  std::function<void()> on_stopped;  // it has ended as it was asked to

  const LifePtr& life() const { return life_; }
  Pool& pool() { return pool_; }
  Warden& warden() { return warden_; }
  const Warden& warden() const { return warden_; }
  const agent::TaskTable& tasks() const { return tasks_; }
  const agent::EventStream& events() const { return events_; }

  void begin() { connect(); }
  // SIGTERM.
  void stop();
  void fail_unit(agent::UnitFaultEvent fault) { events_.add(std::move(fault)); }
  // It is gone; `told`: its kernel closes the connection.
  void die(bool told);

  Result<uint16_t> start(const Assignment& assignment) override;
  void cancel(AttemptId attempt, const std::string& reason) override;
  void create(const std::string& name, uint64_t bytes,
              std::function<void(Result<ReplicaChange>)> done) override;
  void drop(const std::string& name, uint64_t below) override { pool_.drop(name, below); }
  void discard(const DatasetId& id) override { pool_.discard(id); }
  void set_home(const DatasetId& id, bool home) override { pool_.set_home(id, home); }
  void keep(const DatasetNeed& need, std::function<void(Status)> done) override;
  CopyCheck verify(const DatasetId& id) override;
  Result<uint32_t> set_share(AttemptId attempt, uint32_t milli) override {
    return tasks_.shares().set({attempt.task, attempt.attempt}, milli);
  }
  void tell_job(AttemptId attempt, const JobAdvice& advice) override {
    savers_.tell({attempt.task, attempt.attempt}, advice);
  }

 private:
  void connect();
  void register_node();
  void update();
  JobReports job_reports();
  UnhealthyUnits unhealthy() const;
  void answered(const UpdateAnswer& answer, int64_t sent_ns);
  void note_acknowledged(const std::vector<agent::Event>& sent, uint64_t up_to);
  // Unless an answer to this call has come, the connection is given up.
  void give_up_after(int64_t timeout_ns, uint64_t call);
  void retry(bool lasting);
  void wind_down(int64_t until_ns);
  void later(int64_t delay_ns, std::function<void()> what) {
    at_.loop.after(delay_ns, life_, std::move(what));
  }

  Surroundings at_;
  LifePtr life_ = std::make_shared<Life>();
  const std::vector<uint64_t> predecessors_;
  Pool pool_;
  Warden warden_;
  Savers savers_;
  agent::EventStream events_;
  agent::TaskTable tasks_;
  Leasing leasing_;
  agent::Backoff backoff_;
  ConnectionPtr connection_;
  std::shared_ptr<Session> session_;
  uint64_t call_ = 0;       // the one under way, or the next
  bool waiting_ = false;    // for its answer
  uint64_t heartbeat_ = 0;  // the timer that counts
  bool idle_ = false;       // until woken or the heartbeat
  size_t events_sent_ = 0;
  bool stuck_ = false;
  bool stopping_ = false;
};

}  // namespace tierpilot::dst
