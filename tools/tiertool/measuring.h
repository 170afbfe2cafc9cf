// What "tier show" and "probe" share: which tiers, measured how, and what stood in the way.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/probe/active/measure.h"
#include "tools/tiertool/object.h"

namespace CLI {
class App;
}

namespace tierpilot::tiertool {

struct TierChoice {
  std::vector<std::string> directories;  // --dir
  std::vector<std::string> names;        // --tier; empty: all
};

void add_tier_choice(CLI::App& verb, TierChoice& choice);
// --rounds, --footprint and --timeout.
void add_probe_options(CLI::App& verb, ProbeOptions& options);

// The candidates of the topology and the directories; kNotFound for a name that none has.
Result<std::vector<TierSpec>> choose_tiers(const Topology& topology, const TierChoice& choice);

// A warning per figure that was asked for and could not be had, with the reason.
std::vector<std::string> what_is_missing(const std::vector<TierMeasurement>& tiers,
                                         const ProbeOptions& options);

}  // namespace tierpilot::tiertool
