#include "daemon/probe/passive/migration_nodes.h"

#include "bpf/migration_nodes.skel.h"

namespace tierpilot {

MigrationNodes::MigrationNodes(SubjectContext& context)
    : programs_(context, TracepointType::kRawTp) {}
MigrationNodes::~MigrationNodes() = default;

Result<std::unique_ptr<MigrationNodes>> MigrationNodes::start(SubjectContext& context,
                                                              const ::bpf_map* calls) {
  return start_with_some_form([&](HookForm form) -> Result<std::unique_ptr<MigrationNodes>> {
    std::unique_ptr<MigrationNodes> nodes(new MigrationNodes(context));
    if (auto status = nodes->attach(form, calls); !status) return tl::unexpected(status.error());
    return nodes;
  });
}

Status MigrationNodes::attach(HookForm form, const ::bpf_map* calls) {
  skeleton_.reset(tp_migration_nodes::open(nullptr));
  if (!skeleton_)
    return fail(ErrorCode::kUnavailable, programs_.unavailable("opening its BPF object", errno));
  programs_.choose_form(skeleton_->obj, form);
  return programs_.share_map(skeleton_->maps.tp_migrating, calls)
      .and_then([&] { return programs_.load(skeleton_->skeleton); })
      .and_then([&] { return programs_.attach_hooks(); });
}

}  // namespace tierpilot
