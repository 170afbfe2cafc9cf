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
// "unavailable: fentry: ...; kprobe: ...".
Error both_refused(const Error& fentry, const Error& kprobe);

template <class Skeleton>
using SkeletonPtr = std::unique_ptr<Skeleton, DestroySkeleton<Skeleton>>;

// How programs run at kernel functions: fentry and fexit have typed arguments and cost least;
// kprobe and kretprobe are for kernels without them.
enum class HookForm { kFentry, kKprobe };
std::string_view hook_form_name(HookForm form);

// The result of `start(form)` with the first form that the kernel takes, or why it takes none.
template <class Start>
auto start_with_some_form(const Start& start) {
  clear_libbpf_reason();
  auto typed = start(HookForm::kFentry);
  if (typed) return typed;
  clear_libbpf_reason();
  auto probe = start(HookForm::kKprobe);
  if (!probe) probe.error() = both_refused(typed.error(), probe.error());
  return probe;
}

// Declare it after the skeleton it works on, so that programs are detached before they are dropped.
class Programs {
 public:
  Programs(SubjectContext& context, TracepointType type) : context_(context), type_(type) {}

  // Before load(). The kernel's tracepoint must have `args` arguments.
  Status want_tracepoint(::bpf_program* program, int args);
  // As above; without the tracepoint the subject works, and shortfall() says what is missing.
  void like_tracepoint(::bpf_program* program, int args);
  void skip(::bpf_program* program);
  // Of the programs at kernel functions, loads those of this form.
  void choose_form(::bpf_object* object, HookForm form);
  // `map` is to be the other object's, which is loaded and lives as long.
  Status share_map(::bpf_map* map, const ::bpf_map* loaded);

  Status load(::bpf_object_skeleton* skeleton);

  // Attaches what was wanted or liked.
  Status attach_tracepoints();
  // As want_tracepoint and attach_tracepoints, for a program that may not be needed.
  Status prepare_tracepoint(::bpf_program* program, int args);
  Status attach_tracepoint(::bpf_program* program);
  // Attaches what choose_form left.
  Status attach_hooks();
  // Gives the descriptor of the link, for bpf_iter_create.
  Result<int> attach_iterator(::bpf_program* program);
  // Runs `program` for every `period`-th software event (PERF_COUNT_SW_...) of user code on each
  // CPU.
  Status attach_software_event(::bpf_program* program, uint64_t event, uint64_t period);

  // Whatever is attached; the above attach it again.
  void detach() { links_.clear(); }

  void note_shortfall(const std::string& what);
  // Those of another object that belong to the same subject.
  void add_attached(const std::vector<::bpf_program*>& programs);
  // Those that were attached once.
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
  void keep(::bpf_link* link, ::bpf_program* program);

  SubjectContext& context_;
  TracepointType type_;
  std::vector<Wanted> wanted_;
  std::vector<::bpf_program*> hooks_;
  std::vector<::bpf_program*> attached_;
  std::vector<std::unique_ptr<::bpf_link, DestroyLink>> links_;
  std::string shortfall_;
};

}  // namespace tierpilot
