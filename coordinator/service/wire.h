// Cap'n Proto to the coordinator's values and back: only here.
#pragma once

#include "coordinator/core/data/catalog.h"
#include "coordinator/core/data/dataset_check.h"
#include "coordinator/core/decisions/scoreboard.h"
#include "coordinator/core/elastic/elastic_cores.h"
#include "coordinator/core/gangs/checkpoints.h"
#include "coordinator/core/nodes/node_link.h"
#include "coordinator/core/nodes/registry.h"
#include "coordinator/core/queue/kept_back.h"
#include "coordinator/core/sharing/share_keeper.h"
#include "coordinator/job_point.h"
#include "coordinator/model.h"
#include "rpc/task_wire.h"

namespace tierpilot {

inline constexpr size_t kPageBytes = 1 << 20;  // of an answer: it must fit a frame

// As lists of messages are initialised.
unsigned count(const auto& container) {
  return static_cast<unsigned>(container.size());
}

inline constexpr size_t kMostReasonBytes = 512;
// What a node says of itself, cut.
std::string short_reason(capnp::Text::Reader from);
TaskExit read_exit(wire::Exit::Reader in);
JobPoint read_job_report(wire::JobReport::Reader in);
ServedData read_served(wire::ServedData::Reader in);
NodeFacts read_facts(wire::NodeInfo::Reader in);
// What its tiers do, as measured there; 0 where it was not.
NodeRates read_rates(capnp::List<wire::Tier>::Reader tiers);
ReplicaState read_replica(wire::Replica::Reader in);
Result<DatasetSource> read_source(wire::DatasetSource::Reader in);

void write_figure(const Figure& figure, wire::Measure::Builder out);
void write_need(const DatasetNeed& need, wire::DatasetNeed::Builder out);
void write_source(const DatasetSource& source, wire::DatasetSource::Builder out);
void write_assignment(const Assignment& assignment, wire::Assignment::Builder out);
void write_progress(uint64_t task, const std::vector<JobPoint>& points, wire::Task::Builder out);
void write_checkpoints(const std::vector<ShownCheckpoint>& checkpoints, wire::Task::Builder out);
void write_checkpointing(const CheckpointTotals& totals, wire::Checkpointing::Builder out);
void write_task(const Task& task, wire::Task::Builder out);
// Those of one gang, beside it: without what its gang says, and cut so that thousands fit a
// message. What one of them was served and what became of its memory is shown with it alone.
void write_ranks(std::vector<Task> ranks, wire::Task::Builder gang);
void write_share(const CoreShare& share, const std::string& allocator,
                 wire::CoreShare::Builder out);
void write_unit_looks(const std::vector<UnitLook>& looks, capnp::List<wire::UnitLook>::Builder out);
void write_unit_share(const ShownShare& share, const std::string& policy,
                      wire::UnitShare::Builder out);
// The reason becomes this one.
void write_kept_back(const KeptBack& kept, wire::Task::Builder out);
void write_decision(const DecisionRecord& decision, wire::Decision::Builder out);
void write_dataset(const Catalog::Entry& entry, wire::Dataset::Builder out);
// About what it takes.
size_t wire_size(const Catalog::Entry& entry);
void write_check(const DatasetCheck& check, wire::DatasetCheck::Builder out);
void write_score(const Scoreboard::PolicyScore& score, wire::PolicyEntry::Builder out);

}  // namespace tierpilot
