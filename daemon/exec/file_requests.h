// Files that tasks were asked to open, and who waits for them. Each request is answered once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/exec/messages.h"

namespace tierpilot {

class FileRequests {
 public:
  using Opened = std::function<void(Result<UniqueFd>)>;

  // The number of the request.
  uint64_t add(uint64_t task_id, Opened done) {
    requests_[next_] = {task_id, std::move(done)};
    return next_++;
  }
  // The task could not be asked.
  void refuse(uint64_t request, const Error& error) {
    if (auto refused = requests_.extract(request)) refused.mapped().done(tl::unexpected(error));
  }
  // Nothing for a request that was answered before.
  void answer(const FileOpened& answer, UniqueFd file) {
    auto request = requests_.extract(answer.request);
    if (!request) return;
    if (!answer.fault.empty() || !file)
      return request.mapped().done(fail(answer.code, answer.fault));
    request.mapped().done(std::move(file));
  }
  // kUnreachable for all of a task that has ended; 0: of all tasks.
  void end(uint64_t task_id) {
    std::vector<Opened> ended;
    std::erase_if(requests_, [&](auto& item) {
      if (task_id != 0 && item.second.task_id != task_id) return false;
      ended.push_back(std::move(item.second.done));
      return true;
    });
    for (const auto& done : ended) done(fail(ErrorCode::kUnreachable, "its task has ended"));
  }

 private:
  struct Request {
    uint64_t task_id;
    Opened done;
  };
  std::map<uint64_t, Request> requests_;
  uint64_t next_ = 1;
};

}  // namespace tierpilot
