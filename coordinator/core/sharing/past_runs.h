// Is in coordinator/records now.
#pragma once

#include "coordinator/records/past_runs.h"
