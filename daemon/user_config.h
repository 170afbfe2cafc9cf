// [tasks] of the node daemon's configuration: as whom tasks run.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/config.h"

namespace tierpilot {

struct TaskUsersConfig {
  enum class Kind {
    kDaemon,     // the daemon's own user
    kPool,       // each attempt has one of these users for itself
    kSubmitter,  // the account of who submitted it
  };
  Kind kind = Kind::kDaemon;
  uid_t first = 0, last = 0;  // of the pool; each has the group of its number
  uid_t lowest = 1000;        // of submitters: no account below it runs tasks

  bool others() const { return kind != Kind::kDaemon; }
};

// Notes wrong values with the reader. `units`: that tasks run on at a time, a user each.
TaskUsersConfig read_task_users(ConfigReader& reader, uint64_t units);

}  // namespace tierpilot
