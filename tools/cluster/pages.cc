#include "tools/cluster/pages.h"

namespace tierpilot {

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

Status for_each_task(ClusterConnection& connection, const TaskFilter& filter,
                     const std::function<void(wire::Task::Reader)>& visit) {
  for (uint64_t after = filter.after;;) {
    auto request = connection.cluster().taskListRequest();
    request.setState(filter.state);
    request.setJob(filter.job);
    request.setAfter(after);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto page = answer->getTasks();
    if (page.size() == 0) return {};
    for (const auto task : page) visit(task);
    after = page[page.size() - 1].getId();
  }
}

}  // namespace tierpilot
