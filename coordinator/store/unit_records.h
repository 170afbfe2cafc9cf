// How compute units stand in the store's tables. Called inside a transaction, or to read.
#pragma once

#include <string>

#include "base/result.h"
#include "coordinator/records/known_units.h"
#include "coordinator/store/db.h"

namespace tierpilot::records {

Status put_unit(Db& db, const std::string& unit, int64_t since_ms);
// All that is known of the node's units.
Status remove_units(Db& db, const std::string& node);
// The last ten thousand of all units are kept. What was told before is left as it is.
Status put_unit_failure(Db& db, const UnitFailure& failure);
Status remove_unit_failures(Db& db, uint64_t task);
Status remove_unit_failures(Db& db, const std::string& unit);
// An empty reason ends it.
Status put_unit_drain(Db& db, const std::string& unit, int64_t at_ms, const std::string& reason);
Result<KnownUnits> read_units(Db& db);

}  // namespace tierpilot::records
