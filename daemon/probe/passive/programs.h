// Loads and attaches the programs of one skeleton.
#pragma once

#include <bpf/libbpf.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/probe/passive/libbpf_log.h"
#include "daemon/probe/passive/subject.h"

namespace tierpilot {

template <class Skeleton>
struct DestroySkeleton {
  void operator()(Skeleton* skeleton) const { Skeleton::destroy(skeleton); }
};
template <class Skeleton>
using SkeletonPtr = std::unique_ptr<Skeleton, DestroySkeleton<Skeleton>>;

// Declare it after the skeleton it works on, so that programs are detached before they are dropped.
class Programs {
 public:
  Programs(SubjectContext& context, TracepointType type) : context_(context), type_(type) {}

  // Before load(). The kernel's tracepoint must have `args` arguments.
  Status want_tracepoint(::bpf_program* program, int args);
  // As above; without the tracepoint the subject works, and shortfall() says what is missing.
  void like_tracepoint(::bpf_program* program, int args);
  void skip(::bpf_program* program);

  Status load(::bpf_object_skeleton* skeleton);

  // Attaches what was wanted or liked.
  Status attach_tracepoints();
  // Runs `program` for every `period`-th software event (PERF_COUNT_SW_...) of user code on each
  // CPU.
  Status attach_software_event(::bpf_program* program, uint64_t event, uint64_t period);

  void note_shortfall(const std::string& what);
  const std::vector<::bpf_program*>& attached() const { return attached_; }
  const std::string& shortfall() const { return shortfall_; }
  std::string unavailable(std::string_view what, int err) const;

 private:
  struct DestroyLink {
    void operator()(::bpf_link* link) const { bpf_link__destroy(link); }
  };
  struct Wanted {
    ::bpf_program* program;
    bool optional;
  };
  Status attach_tracepoint(::bpf_program* program);

  SubjectContext& context_;
  TracepointType type_;
  std::vector<Wanted> wanted_;
  std::vector<::bpf_program*> attached_;
  std::vector<std::unique_ptr<::bpf_link, DestroyLink>> links_;
  std::string shortfall_;
};

}  // namespace tierpilot
