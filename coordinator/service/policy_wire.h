// The coordinator's values about policies, as Cap'n Proto.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "coordinator/core/decisions/oversight.h"
#include "coordinator/policy_host/version_archive.h"
#include "policies/learning/guard.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

using NamedInterval = std::pair<std::string, MeanInterval>;

void write_standing(const Guard& guard, wire::PolicyEntry::Builder out);
void write_guard(bool on, const Oversight::Tally& tally, wire::PolicyGuard::Builder out);
void write_version(const WeightsVersion& version, wire::WeightsVersion::Builder out);
void write_event(const PolicyEvent& event, wire::PolicyEvent::Builder out);
void write_comparison(const BoundedMeasure& measure, const NamedInterval& first,
                      const NamedInterval& second, wire::PolicyComparison::Builder out);

}  // namespace tierpilot
