// The programs that know the nodes and owners of a migration, beside those of the subject
// "migration".
#pragma once

#include "bpf/intf.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {

class MigrationNodes {
 public:
  // Attached. `calls` is the other object's map of calls in progress. The error says why no form
  // runs here.
  static Result<std::unique_ptr<MigrationNodes>> start(SubjectContext& context,
                                                       const ::bpf_map* calls);
  virtual ~MigrationNodes() = default;

  virtual void detach() = 0;
  virtual Status attach() = 0;
  // CPU time that these and the subject's programs add to a call.
  virtual int64_t call_ns() const = 0;

  // From now on calls tell their owners in this way.
  virtual void tell_owners(tp_owners_by by) = 0;
  // Calls that found no slot among those in progress.
  virtual uint64_t lost_calls() const = 0;
  virtual const std::vector<::bpf_program*>& attached() const = 0;
};

}  // namespace tierpilot
