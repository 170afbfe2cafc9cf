// A node's dataset pool as its promises say: what a daemon does with replicas, without bytes. The
// shelf is the node's disk and memory; it outlives the daemon.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/agent/tasks/data_plane.h"
#include "daemon/memory/pool/names.h"
#include "tests/dst/judge/judge.h"
#include "tests/dst/loop.h"
#include "tests/dst/random.h"

namespace tierpilot::dst {

struct Stored {
  Digest content = 0;
  uint64_t bytes = 0;
  bool fast = false;
  bool slow = false;  // survives a reboot
  bool home = false;
  bool rotten = false;  // the bytes in the slow tier are other ones by now
};
using Shelf = std::map<DatasetId, Stored>;

class Pool final : public agent::DataPlane {
 public:
  struct Surroundings {
    Loop& loop;
    Judge& judge;
    Random& random;
    int node = 0;
    LifePtr life;                 // the daemon's
    bool keeps_old_home = false;  // until it is told that the coordinator has the new version
    // What another node has now, by its address; null: it cannot be had.
    std::function<const Stored*(const std::string& address, const DatasetId& id)> remote;
    // It gave bytes that are not those of the version: it looks at what it has.
    std::function<void(const std::string& address, const DatasetId& id)> suspect;
    std::function<void(const DatasetId& id)> lost;  // a damaged copy has gone
    std::function<void(const ReplicaChange&)> changed;
    std::function<void(int step)> at_commit_step;  // may end the daemon
    std::function<bool()> disk_fails = [] { return false; };
    std::function<bool()> disk_is_full = [] { return false; };
    // Its commit failed, and what is on disk of it nobody can tell.
    std::function<void(const DatasetId&, const Stored&)> half_synced = [](const auto&,
                                                                          const auto&) {};
  };
  Pool(Shelf& shelf, Surroundings surroundings);

  void serve(AttemptId owner, const std::vector<ServeItem>& needs,
             std::function<void(Result<Served>)> done) override;
  void cancel(AttemptId owner) override;
  void finish(AttemptId owner, bool success, std::function<void(Committed)> done) override;
  Result<double> evict_gb_per_s() const override {
    return fail(ErrorCode::kUnavailable, "not measured");
  }
  uint64_t reference_ns(uint64_t) const override { return 0; }

  void create(const std::string& name, uint64_t bytes,
              std::function<void(Result<ReplicaChange>)> done);
  void drop(const std::string& name, uint64_t below);
  void discard(const DatasetId& id);
  void set_home(const DatasetId& id, bool home);
  void keep(const ServeItem& item, std::function<void(Status)> done);
  // Reads all copies; what is damaged goes.
  ReplicaCheck verify(const DatasetId& id);
  // Room is made: replicas that are no home go, and what is in the slow tier too.
  void evict();
  std::vector<ReplicaChange> replicas() const;

 private:
  struct Request {
    std::vector<ServeItem> needs;
    std::map<std::string, Digest> copies;  // private ones, by dataset
    bool served = false;
    bool cancelled = false;
    std::function<void(Result<Served>)> done;
  };
  void bring_in(AttemptId owner);
  Status take(AttemptId owner, Request& request, const ServeItem& item);
  // Good bytes of the version, from here or the sources; null: nobody has them.
  const Stored* find_good(const ServeItem& item);
  Committed publish(AttemptId owner, const Request& request);
  void take_back(ReplicaChange change);
  void doom(const std::string& name, uint64_t below);
  void sweep();
  void pin(const Request& request, int by);
  bool holds(const std::string& name) const;
  void later(int64_t from_ms, int64_t to_ms, std::function<void()> what);
  Run run_of(AttemptId owner) const { return {owner.task, owner.attempt, at_.node}; }
  static ReplicaChange change_of(const DatasetId& id, const Stored& stored);

  Shelf& shelf_;
  Surroundings at_;
  std::map<AttemptId, Request> requests_;
  std::map<DatasetId, int> pins_;
  std::set<DatasetId> doomed_;
};

}  // namespace tierpilot::dst
