// The programs that know the nodes of a migration, beside those of the subject "migration".
#pragma once

#include "daemon/probe/passive/programs.h"

struct tp_migration_nodes;

namespace tierpilot {

class MigrationNodes {
 public:
  // `calls` is the other object's map of calls in progress. The error says why no form runs here.
  static Result<std::unique_ptr<MigrationNodes>> start(SubjectContext& context,
                                                       const ::bpf_map* calls);
  ~MigrationNodes();

  const std::vector<::bpf_program*>& attached() const { return programs_.attached(); }

 private:
  explicit MigrationNodes(SubjectContext& context);
  Status attach(HookForm form, const ::bpf_map* calls);

  SkeletonPtr<tp_migration_nodes> skeleton_;
  Programs programs_;
};

}  // namespace tierpilot
