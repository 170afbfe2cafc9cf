// One subject: a skeleton, its programs in the kernel, and how its counters are read.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "daemon/probe/passive/capabilities.h"
#include "daemon/probe/passive/decode.h"
#include "daemon/probe/passive/kernel_btf.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot {

class Programs;

// How tracepoint programs are loaded. tp_btf checks the arguments against the kernel's types;
// raw_tp needs no BTF, but then a program can follow no kernel pointer.
enum class TracepointType { kTpBtf, kRawTp };

// What all subjects are started with. Outlives them.
struct SubjectContext {
  const PassiveOptions& options;
  const KernelBtf* btf;  // null: the kernel has none
  Capabilities capabilities;
  uint32_t pidns_inum;       // of the own pid namespace, 0 for the machine's first one
  uint32_t node_shift = 64;  // KernelBtf::node_shift()
  EnumNames reasons;         // enum migrate_reason
  UniqueFd events{};         // the shared ring; the first subject with events provides it
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual void sample(PassiveSample& sample) = 0;
  virtual void track(int32_t /*pgid*/, const OwnCgroup& /*cgroup*/) {}
  virtual void untrack(int32_t /*pgid*/) {}
  virtual void read_group(int32_t /*pgid*/, GroupIo& /*group*/) const {}
  virtual void track_cgroup(uint64_t /*id*/) {}
  virtual void read_cgroup(uint64_t /*id*/, CgroupMemory& /*cgroup*/) const {}
  virtual const Programs& programs() const = 0;
};

// The error's message is the reason: "unavailable: ...".
using StartedSubject = Result<std::unique_ptr<Subject>>;
StartedSubject start_migration(SubjectContext& context, TracepointType type);
StartedSubject start_reclaim(SubjectContext& context, TracepointType type);
StartedSubject start_compaction(SubjectContext& context, TracepointType type);
StartedSubject start_faults(SubjectContext& context, TracepointType type);
StartedSubject start_numa_hint(SubjectContext& context, TracepointType type);
StartedSubject start_fault_time(SubjectContext& context, TracepointType type);
StartedSubject start_block_io(SubjectContext& context, TracepointType type);

}  // namespace tierpilot
