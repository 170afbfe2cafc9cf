// What a fake cluster tells of nodes, datasets and tasks.
#pragma once

#include <cstdint>
#include <string>

#include "rpc/cluster.capnp.h"

namespace tierpilot {

void fill_node(wire::NodeEntry::Builder node);
void fill_dataset(wire::Dataset::Builder dataset, const std::string& name, uint64_t bytes);
void fill_task(wire::Task::Builder task, uint64_t id, const std::string& state);
// A GPU and cores that are shared.
void fill_units(capnp::List<wire::UnitEntry>::Builder units);
// Of a gang that was placed by an older coordinator, then by this one.
void explain_gang(wire::Cluster::TaskExplainResults::Builder results);
// Of a task with a share of a unit.
void explain_shared(wire::Cluster::TaskExplainResults::Builder results);

}  // namespace tierpilot
