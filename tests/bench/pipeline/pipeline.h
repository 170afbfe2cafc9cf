// Tasks through a real coordinator from submit to their recorded end, over real connections.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/histogram.h"
#include "rpc/address.h"

namespace tierpilot::bench {

struct PipelineOptions {
  uint32_t nodes = 1000;
  uint32_t units = 4;  // of each node
  int64_t run_ms = 20;
  uint32_t tasks_per_submit = 10;
  uint32_t submits_in_flight = 8;
  // No more is submitted while so many tasks have not ended: else the queue only grows.
  uint32_t tasks_in_flight = 2000;
};

struct PipelineRound {
  double tasks_per_s = 0;
  Histogram submit_ns;    // submit to its durable acknowledgement
  Histogram dispatch_ns;  // that acknowledgement to the assignment's arrival at a node
  Histogram finish_ns;    // the arrival, and the run, to the recorded end
  double own_cpu_us = 0;  // of this process, nodes and client, per task
};

// The client and all nodes, on the calling thread. Throws when the coordinator refuses.
class Pipeline {
 public:
  Pipeline(const Address& coordinator, const PipelineOptions& options);
  ~Pipeline();

  PipelineRound run(uint32_t tasks);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tierpilot::bench
