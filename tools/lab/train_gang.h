// tierctl policy train --kind gang: makes weights for the gang policy ac by simulation.
#pragma once

#include <string>

#include "tools/lab/command.h"

namespace tierpilot::lab {

struct GangTrainingOptions {
  std::string config;
  std::string weights;  // the file that is written
  std::string trace;    // half of the jobs come from its first half; may be empty
  std::string history;  // of gangs that a cluster ran: all jobs come from it; may be empty
  std::string record;   // with it: of the cluster's failures; may be empty
};
int train_gang(const Output& output, const GangTrainingOptions& options);

}  // namespace tierpilot::lab
