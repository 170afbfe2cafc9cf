// The compute units of the nodes: tasks whose data has been served wait for units in the order of
// the coordinator's queue, and none overtakes (as daemon/agent/tasks/task_table.cc). Where nodes
// are processes of one machine, running tasks share its cores.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <vector>

#include "base/large_pages.h"
#include "policies/scheduling/service_order.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/events/event_queue.h"
#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {

class Engines {
 public:
  struct Started {
    uint32_t task;
    uint32_t node;
  };

  Engines(const ClusterSpec& cluster, EventQueue& events);

  // Of tasks that run, whatever the coordinator knows of them yet.
  uint64_t busy_units() const { return busy_; }
  const NodeGroup& group(uint32_t node) const { return *nodes_[node].group; }
  void expect(uint32_t node) const { prefetch(nodes_[node]); }
  // `place` orders those that wait; its number is that of the task's arrival at the node.
  void make_ready(uint32_t node, uint32_t task, QueuePlace place, uint32_t units);
  // The next that waits at the node and has units now; false: none.
  bool start_next(uint32_t node, uint32_t& task);
  // A started task works for so long if it has a core for each of its units; ends with an event
  // kRunEnd, or kCores where cores are shared.
  void run(int64_t now_ns, uint32_t node, uint32_t task, uint32_t generation, double seconds,
           uint32_t units);
  // How much of its time a task that began then has had: less than has passed where cores are
  // shared.
  double ran_s(int64_t now_ns, uint32_t node, uint32_t task, int64_t started_ns);
  // The task's units are free again; also for one that is to end early.
  void end(int64_t now_ns, uint32_t node, uint32_t task, uint32_t units);
  void forget_ready(uint32_t node, uint32_t task);
  // A task that was started will not run.
  void withdraw(uint32_t node, uint32_t units);
  // A transfer of the node's data begins or ends: where cores are shared it needs a part of one.
  // How many times as long as alone one takes that begins now; it keeps to that.
  double transfer(int64_t now_ns, uint32_t node, bool begins);
  // The coordinator and the node's daemon begin one of the three parts of their work for a task:
  // where cores are shared it takes its time of them. How many times as long as alone a step takes
  // that begins now.
  double handle(int64_t now_ns, uint32_t node);
  // Tasks that a kCores event ends. The list is good until the next call.
  const std::vector<Started>& ended_on_cores(const Event& event);

 private:
  struct Ready {
    QueuePlace place;
    uint32_t task;
    uint32_t units;
  };
  struct alignas(64) Node {
    const NodeGroup* group;
    uint32_t busy = 0;
    uint32_t machine = UINT32_MAX;
    boost::container::small_vector<Ready, 3> ready;  // by place; seldom more
  };
  // Processor sharing in virtual time: `served_s` grows by what each unit gets, so a task ends when
  // it has grown by the task's work (as in fair queueing: Demers, Keshav, Shenker 1989).
  struct Machine {
    struct Running {
      double began_at_s;
      double ends_at_s;
      Started task;
      uint32_t units;
    };
    double cores = 0;
    double served_s = 0;
    int64_t settled_ns = 0;
    uint32_t units = 0;  // running
    uint32_t transfers = 0;
    uint32_t generation = 0;
    std::vector<Running> running;

    double speed() const;
    void begin(double seconds, Started what, uint32_t its_units);
    void settle(int64_t now_ns);
  };

  void schedule(int64_t now_ns, uint32_t machine);

  EventQueue& events_;
  uint64_t busy_ = 0;
  LargeVector<Node> nodes_;
  std::vector<Machine> machines_;
  std::vector<Started> ended_;
};

}  // namespace tierpilot::sim
