// The values of model/ in messages: one conversion each way, for every program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/attempt.h"
#include "model/task_spec.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

std::string text(capnp::Text::Reader from);
std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from);
// Of the same length.
void write_texts(const std::vector<std::string>& from, capnp::List<capnp::Text>::Builder to);

using Environment = std::vector<std::pair<std::string, std::string>>;
Environment read_env(capnp::List<wire::EnvVar>::Reader from);
void write_env(const Environment& from, capnp::List<wire::EnvVar>::Builder to);

AttemptId read_attempt(wire::Attempt::Reader from);
void write_attempt(AttemptId from, wire::Attempt::Builder to);

// kInvalid: a word that this version does not know.
Result<TaskSpec> read_spec(wire::TaskSpec::Reader from);
void write_spec(const TaskSpec& from, wire::TaskSpec::Builder to);

}  // namespace tierpilot
