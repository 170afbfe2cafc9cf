// Accepting submits: checked, numbered, on disk, and only then answered. Event loop thread only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/queue/admission.h"

namespace tierpilot {

class Intake {
 public:
  using Answer = std::function<void(Result<SubmitReceipt>)>;

  // What tasks are promised, beyond that they run.
  // `coming` were taken, and are on their way to the disk.
  using Promises =
      std::function<Status(std::vector<TaskSpec>&, const std::vector<const TaskSpec*>& coming)>;

  // `accepted` is called when new tasks stand in the book.
  Intake(ClusterState& state, Promises promises, std::function<void()> accepted)
      : state_(state), promises_(std::move(promises)), accepted_(std::move(accepted)) {}

  // The same request id of the same user gets the same answer, before and after a restart; with
  // other content it is a kConflict.
  void submit(const RequestKey& request, std::vector<TaskSpec> specs, Answer answer);

 private:
  struct Pending {
    std::string digest;
    std::vector<Answer> waiting;
    std::vector<TaskSpec> shared;  // that have shares of units
  };
  std::vector<const TaskSpec*> coming() const;
  std::vector<Task> number(const std::string& user, std::vector<TaskSpec> specs,
                           const Dependencies& depends_on);
  void committed(const RequestKey& request, const SubmitReceipt& receipt, std::vector<Task> tasks,
                 const Dependencies& depends_on, const Status& status);

  ClusterState& state_;
  Promises promises_;
  std::function<void()> accepted_;
  std::map<RequestKey, Pending> pending_;  // submits on their way to the disk
};

}  // namespace tierpilot
