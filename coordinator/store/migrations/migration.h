// Steps between formats of the store, one file each. A program that changes a table adds a file
// `NN_what.cc`, its declaration here and its line in migrations.cc; no step is changed any more
// once a release has it. A new store goes through the same steps from kEmptyStore on, so that
// there is only one way to come to the tables of today.
#pragma once

#include <cstdint>
#include <span>

#include "coordinator/store/db.h"

namespace tierpilot::records {

struct Migration {
  int64_t to;            // the format that it makes of the one before
  Status (*apply)(Db&);  // within a transaction
};

// By rising format, without a gap.
std::span<const Migration> migrations();

// The format that a new, empty store begins with: the next step makes all its tables.
inline constexpr int64_t kEmptyStore = 4;

Status add_decision_inputs(Db& db);
Status key_decisions_by_id(Db& db);
Status move_rewards(Db& db);
Status make_tables(Db& db);
Status add_node_orders(Db& db);
Status add_gangs(Db& db);
Status add_dataset_contents(Db& db);
Status add_shares(Db& db);
Status add_what_jobs_did(Db& db);
Status name_submissions(Db& db);
Status add_pair_effects(Db& db);
Status name_unit_faults(Db& db);
Status key_receipts_by_user(Db& db);
Status add_safe_checkpoints(Db& db);
Status add_clock_offsets(Db& db);
Status add_nodes_away(Db& db);

}  // namespace tierpilot::records
