#include "daemon/probe/passive/migration_nodes.h"

#include <type_traits>

#include "bpf/migration_fentry.skel.h"
#include "bpf/migration_kprobe.skel.h"

namespace tierpilot {
namespace {

// By tests/bench/passive in guests that count instructions, taken for a nanosecond each, which is
// more than a processor needs for them.
constexpr int64_t kFentryCallNs = 1050, kKprobeCallNs = 1700;

template <class Skeleton>
class Hook final : public MigrationNodes {
 public:
  explicit Hook(SubjectContext& context)
      : context_(context), programs_(context, TracepointType::kRawTp) {}

  Status start(HookForm form, const ::bpf_map* calls) {
    skeleton_.reset(Skeleton::open(nullptr));
    if (!skeleton_)
      return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
    skeleton_->rodata->tp_node_shift = context_.node_shift;
    skeleton_->rodata->tp_pidns_inum = context_.pidns_inum;
    skeleton_->rodata->tp_single_period = context_.options.single_page_period;
    programs_.choose_form(skeleton_->obj, form);
    return programs_.share_map(skeleton_->maps.tp_migrating, calls)
        .and_then([&] { return programs_.load(skeleton_->skeleton); })
        .and_then([&] { return programs_.attach_hooks(); });
  }

  void detach() override { programs_.detach(); }
  Status attach() override { return programs_.attach_hooks(); }
  int64_t call_ns() const override {
    return std::is_same_v<Skeleton, tp_migration_fentry> ? kFentryCallNs : kKprobeCallNs;
  }
  void tell_owners(tp_owners_by by) override { skeleton_->bss->tp_owners_by = by; }
  uint64_t lost_calls() const override { return skeleton_->bss->tp_lost_calls; }
  const std::vector<::bpf_program*>& attached() const override { return programs_.attached(); }

 private:
  SubjectContext& context_;
  SkeletonPtr<Skeleton> skeleton_;
  Programs programs_;
};

using Started = Result<std::unique_ptr<MigrationNodes>>;

template <class Skeleton>
Started start_hook(SubjectContext& context, HookForm form, const ::bpf_map* calls) {
  auto hook = std::make_unique<Hook<Skeleton>>(context);
  if (auto status = hook->start(form, calls); !status) return tl::unexpected(status.error());
  return hook;
}

}  // namespace

Started MigrationNodes::start(SubjectContext& context, const ::bpf_map* calls) {
  return start_with_some_form([&](HookForm form) {
    return form == HookForm::kFentry ? start_hook<tp_migration_fentry>(context, form, calls)
                                     : start_hook<tp_migration_kprobe>(context, form, calls);
  });
}

}  // namespace tierpilot
