// Keeps the newest checkpoint of each job in the fast tier, on every node that has it, where there
// is room that nobody else uses: a try that begins from it finds it in memory (Wang et al.,
// "GEMINI: Fast Failure Recovery in Distributed Training with In-Memory Checkpoints", SOSP 2023).
// The slow tier has it as well, and older ones only there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "daemon/memory/pool/pool.h"
#include "model/checkpoint_name.h"

namespace tierpilot::agent {

// Event loop thread only.
class FreshCheckpoints {
 public:
  // What an earlier daemon left counts as it is.
  explicit FreshCheckpoints(Pool& pool);

  // Of any dataset of the pool.
  void changed(const ReplicaChange& change);

 private:
  struct Newest {
    CheckpointName name;
    DatasetId id;
  };

  void promote(const DatasetId& id);
  void replace(const DatasetId& old, const DatasetId& fresh);

  Pool& pool_;
  std::map<uint64_t, Newest> newest_;  // by task
  // Callbacks that outlive it find it gone.
  std::shared_ptr<FreshCheckpoints*> self_;
};

}  // namespace tierpilot::agent
