#include "tests/bench/size/crowd.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "tools/cluster/connection.h"

namespace tierpilot::bench {
namespace {

// Nodes that tell at a time: all at once would only queue, and leases would end meanwhile.
constexpr size_t kAtOnce = 50;

std::string name_of(size_t node) {
  return fmt::format("node-{:05}", node);
}

// Adds what `ask` gives, page after page; it returns the name to go on after.
template <class Ask>
Listed list_all(Ask ask) {
  Listed all;
  for (std::string after;; ++all.pages) {
    const uint64_t before = all.entries;
    after = ask(after, all);
    if (all.entries == before) return all;
  }
}

}  // namespace

Crowd::Crowd(const Address& coordinator, uint32_t nodes) : coordinator_(coordinator) {
  client_ = RpcConnection::connect(loop_, coordinator, nullptr).wait(loop_.wait_scope());
  const NodeHooks hooks{[](uint64_t) {}, [this](uint64_t) { recorded_->fulfill(); }};
  for (uint32_t i = 0; i < nodes; ++i)
    nodes_.push_back(std::make_unique<SimulatedNode>(loop_, runs_, name_of(i), 4, hooks));
}

void Crowd::join() {
  join_all(loop_, coordinator_, nodes_);
}

void Crowd::add_datasets(uint32_t count, uint64_t bytes) {
  for (uint32_t i = 0; i < count; ++i) {
    datasets_.push_back({fmt::format("dataset-{:05}", i), bytes, name_of(i % nodes_.size())});
    auto request = cluster().datasetAddRequest();
    request.setRequestId(draw_request_id());
    request.setName(datasets_.back().dataset);
    request.setNode(datasets_.back().home);
    request.initSource().setZeroBytes(bytes);
    request.send().wait(loop_.wait_scope());
  }
}

void Crowd::hold_all() {
  for (size_t first = 0; first < nodes_.size(); first += kAtOnce) {
    const size_t end = std::min(first + kAtOnce, nodes_.size());
    for (size_t i = first; i < end; ++i) nodes_[i]->hold(datasets_);
    const auto told = [&] {
      return std::all_of(nodes_.begin() + static_cast<ptrdiff_t>(first),
                         nodes_.begin() + static_cast<ptrdiff_t>(end),
                         [](const auto& node) { return node->all_told(); });
    };
    while (!told()) loop_.after_ms(1).wait(loop_.wait_scope());
  }
}

Listed Crowd::list_nodes() {
  return list_all([this](const std::string& after, Listed& all) {
    auto request = cluster().nodeListRequest();
    request.setAfter(after);
    auto answer = request.send().wait(loop_.wait_scope());
    const auto nodes = answer.getNodes();
    all.entries += nodes.size();
    return nodes.size() ? std::string(nodes[nodes.size() - 1].getInfo().getName().cStr()) : after;
  });
}

Listed Crowd::list_datasets() {
  return list_all([this](const std::string& after, Listed& all) {
    auto request = cluster().datasetListRequest();
    request.setAfter(after);
    auto answer = request.send().wait(loop_.wait_scope());
    const auto datasets = answer.getDatasets();
    all.entries += datasets.size();
    for (const auto dataset : datasets) all.replicas += dataset.getReplicas().size();
    return datasets.size() ? std::string(datasets[datasets.size() - 1].getName().cStr()) : after;
  });
}

std::vector<int64_t> Crowd::run_tasks(uint32_t count) {
  std::vector<int64_t> took_ns;
  for (uint32_t i = 0; i < count; ++i) took_ns.push_back(run_task(i));
  return took_ns;
}

int64_t Crowd::run_task(uint32_t number) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  recorded_ = kj::mv(paf.fulfiller);
  auto request = cluster().submitRequest();
  request.setRequestId(draw_request_id());
  auto task = request.initTasks(1)[0];
  task.initArgv(1).set(0, "/usr/bin/true");
  if (!datasets_.empty())
    task.initDatasets(1)[0].setDataset(datasets_[number % datasets_.size()].dataset);
  const int64_t began_ns = system_clock().boot_ns();
  request.send().wait(loop_.wait_scope());
  paf.promise.wait(loop_.wait_scope());
  return system_clock().boot_ns() - began_ns;
}

}  // namespace tierpilot::bench
