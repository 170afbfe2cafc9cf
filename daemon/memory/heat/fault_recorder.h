// The BPF programs that note fault addresses, shared by all trackers that need them. Internal.
#pragma once

#include <memory>

#include "bpf/fault_addr.skel.h"
#include "daemon/memory/heat/fault_addresses.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {

class FaultRecorder {
 public:
  static Result<std::shared_ptr<FaultRecorder>> open();

  Status watch(pid_t pid);
  void unwatch(pid_t pid);
  // Since the last call.
  FaultCounts take(pid_t pid);

 private:
  FaultRecorder();
  Status start();
  void drain();

  PassiveOptions options_;
  std::optional<KernelBtf> btf_;
  SubjectContext context_;
  SkeletonPtr<tp_fault_addr> skeleton_;
  Programs programs_;
  std::map<pid_t, FaultCounts> pending_;
};

}  // namespace tierpilot
