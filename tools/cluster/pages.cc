#include "tools/cluster/pages.h"

namespace tierpilot {

Status for_each_node(ClusterConnection& connection,
                     const std::function<void(wire::NodeEntry::Reader)>& visit) {
  for (std::string after;;) {
    auto request = connection.cluster().nodeListRequest();
    request.setAfter(after);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    bool is_new = false;
    // An older coordinator knows no pages: it gives all nodes each time.
    for (const auto node : answer->getNodes()) {
      const std::string name = node.getInfo().getName().cStr();
      if (name <= after) continue;
      visit(node);
      after = name;
      is_new = true;
    }
    if (!is_new) return {};
  }
}

Status for_each_dataset(ClusterConnection& connection,
                        const std::function<void(wire::Dataset::Reader)>& visit) {
  for (std::string after;;) {
    auto request = connection.cluster().datasetListRequest();
    request.setAfter(after);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto page = answer->getDatasets();
    if (page.size() == 0) return {};
    for (const auto dataset : page) visit(dataset);
    after = page[page.size() - 1].getName().cStr();
  }
}

Status for_each_unit(ClusterConnection& connection,
                     const std::function<void(wire::UnitEntry::Reader)>& visit) {
  for (std::string after;;) {
    auto request = connection.cluster().unitListRequest();
    request.setAfter(after);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto page = answer->getUnits();
    if (page.size() == 0) return {};
    for (const auto unit : page) visit(unit);
    after = page[page.size() - 1].getId().cStr();
  }
}

Status for_each_task(ClusterConnection& connection, const TaskFilter& filter,
                     const std::function<void(wire::Task::Reader)>& visit) {
  for (uint64_t after = filter.after;;) {
    auto request = connection.cluster().taskListRequest();
    request.setState(filter.state);
    request.setSubmission(filter.submission);
    request.setAfter(after);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto page = answer->getTasks();
    if (page.size() == 0) return {};
    for (const auto task : page) visit(task);
    after = page[page.size() - 1].getId();
  }
}

Status for_each_past_task(ClusterConnection& connection, int64_t from_ms, int64_t until_ms,
                          const std::function<Status(wire::Task::Reader)>& visit) {
  for (uint64_t after = 0;;) {
    auto request = connection.cluster().historyTasksRequest();
    request.setFromMs(from_ms);
    request.setUntilMs(until_ms);
    request.setAfter(after);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    for (const auto task : answer->getTasks())
      if (auto visited = visit(task); !visited) return visited;
    if (answer->getNext() <= after) return {};
    after = answer->getNext();
  }
}

}  // namespace tierpilot
