// The agent's values and their Cap'n Proto form; nothing else of the agent translates. Reading is
// strict: what comes from the network is checked here for form, by the task table for sense.
#pragma once

#include "base/result.h"
#include "daemon/agent/job_channel/job_message.h"
#include "daemon/agent/node/model.h"
#include "rpc/task_wire.h"

namespace tierpilot::agent {

void write_measure(wire::Measure::Builder to, const Result<double>& from);
void write_metric(wire::Metric::Builder to, const MetricValue& from);
void write_replica(wire::Replica::Builder to, const ReplicaChange& from);
// kInvalid: no name, or too many sources.
Result<ServeItem> read_need(wire::DatasetNeed::Reader from);
// `now_ns`: of Clock::boot_ns(), when it is sent.
void write_event(wire::NodeEvent::Builder to, const Event& from, int64_t now_ns);
void write_job_report(wire::JobReport::Builder to, const JobReport& from);

// kInvalid: names or values with NUL bytes, environment names with '=', negative limits, datasets
// without a name or named twice, unknown memory tiers, more than 4,096 arguments, variables or
// datasets.
Result<Assignment> read_assignment(wire::Assignment::Reader from);
// kInvalid: a kind of source that this version does not know.
// Files only of everyone's where tasks have other users than the daemon: they would read with its
// rights.
Result<CreateSource> read_source(wire::DatasetSource::Reader from, bool of_everyone);

}  // namespace tierpilot::agent
