#include "daemon/agent/tasks/whose_fault.h"

#include <utility>

namespace tierpilot::agent {

ExitReport exit_of(TaskEnd how, std::string reason) {
  ExitReport exit;
  exit.how = how;
  exit.reason = std::move(reason);
  return exit;
}

bool is_this_nodes(const Error& error) {
  return error.code != ErrorCode::kInvalid;
}

bool is_this_nodes_disk(const Error& error) {
  return error.code == ErrorCode::kIo || error.code == ErrorCode::kExhausted ||
         error.code == ErrorCode::kUnavailable;
}

ExitReport data_failure(const Error& error) {
  auto exit = exit_of(TaskEnd::kDataFailed, error.message);
  exit.node_fault = is_this_nodes(error);
  return exit;
}

}  // namespace tierpilot::agent
