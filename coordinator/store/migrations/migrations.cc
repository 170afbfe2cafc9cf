#include <array>

#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

std::span<const Migration> migrations() {
  static constexpr std::array kSteps{
      Migration{2, add_decision_inputs},   Migration{3, key_decisions_by_id},
      Migration{4, move_rewards},          Migration{5, make_tables},
      Migration{6, add_node_orders},       Migration{7, add_gangs},
      Migration{8, add_dataset_contents},  Migration{9, add_shares},
      Migration{10, add_what_jobs_did},    Migration{11, name_submissions},
      Migration{12, add_pair_effects},     Migration{13, name_unit_faults},
      Migration{14, key_receipts_by_user}, Migration{15, add_safe_checkpoints},
      Migration{16, add_clock_offsets},    Migration{17, add_nodes_away},
  };
  return kSteps;
}

}  // namespace tierpilot::records
