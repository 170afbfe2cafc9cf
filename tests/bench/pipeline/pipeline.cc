#include "tests/bench/pipeline/pipeline.h"

#include <fmt/format.h>
#include <time.h>

#include <map>
#include <stdexcept>
#include <unordered_map>

#include "base/clock.h"
#include "rpc/error.h"
#include "tests/bench/pipeline/simulated_node.h"
#include "tools/cluster/connection.h"

namespace tierpilot::bench {
namespace {

int64_t process_cpu_ns() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return spent.tv_sec * 1'000'000'000 + spent.tv_nsec;
}

struct Times {
  int64_t acknowledged_ns = 0;
  int64_t started_ns = 0;
};

}  // namespace

struct Pipeline::State {
  explicit State(const PipelineOptions& options_in)
      : options(options_in), runs(loop, options_in.run_ms) {}

  void join_all(const Address& coordinator);
  void submit_more();
  void submit_one();
  void started(uint64_t task);
  void recorded(uint64_t task);
  void count_dispatch(const Times& times);

  PipelineOptions options;
  EventLoop loop;
  Runs runs;
  kj::Own<RpcConnection> client;
  std::vector<std::unique_ptr<SimulatedNode>> nodes;
  PipelineRound round;
  std::unordered_map<uint64_t, Times> open;  // an assignment may overtake the acknowledgement
  uint32_t to_submit = 0, submitted = 0, ended = 0, submits_open = 0;
  std::string failed;
  kj::Own<kj::PromiseFulfiller<void>> all_ended;
};

void Pipeline::State::join_all(const Address& coordinator) {
  client = RpcConnection::connect(loop, coordinator, nullptr).wait(loop.wait_scope());
  for (uint32_t i = 0; i < options.nodes; ++i)
    nodes.push_back(
        std::make_unique<SimulatedNode>(loop, runs, fmt::format("node-{}", i), options.units,
                                        NodeHooks{[this](uint64_t task) { started(task); },
                                                  [this](uint64_t task) { recorded(task); }}));
  bench::join_all(loop, coordinator, nodes);
}

void Pipeline::State::submit_more() {
  while (failed.empty() && submitted < to_submit && submits_open < options.submits_in_flight &&
         submitted - ended < options.tasks_in_flight)
    submit_one();
}

void Pipeline::State::submit_one() {
  const uint32_t count = std::min(options.tasks_per_submit, to_submit - submitted);
  submitted += count;
  ++submits_open;
  auto request = client->bootstrap().castAs<wire::Cluster>().submitRequest();
  request.setRequestId(draw_request_id());
  auto tasks = request.initTasks(count);
  for (auto task : tasks) {
    auto argv = task.initArgv(2);
    argv.set(0, "/usr/bin/true");
    argv.set(1, "--an-argument=of-usual-length");
    task.setFloatOperations(1e9);
  }
  const int64_t sent_ns = system_clock().boot_ns();
  loop.detach(request.send().then(
                  [this, sent_ns](auto&& answer) {
                    const int64_t now_ns = system_clock().boot_ns();
                    round.submit_ns.add(static_cast<uint64_t>(now_ns - sent_ns));
                    --submits_open;
                    for (const uint64_t task : answer.getTasks()) {
                      auto& times = open[task];
                      times.acknowledged_ns = now_ns;
                      if (times.started_ns) count_dispatch(times);
                    }
                    submit_more();
                  },
                  [this](kj::Exception&& exception) {
                    failed = to_error(exception).message;
                    all_ended->fulfill();
                  }),
              "a submit");
}

void Pipeline::State::count_dispatch(const Times& times) {
  const int64_t took_ns = times.started_ns - times.acknowledged_ns;
  round.dispatch_ns.add(static_cast<uint64_t>(std::max<int64_t>(took_ns, 0)));
}

void Pipeline::State::started(uint64_t task) {
  auto& times = open[task];
  times.started_ns = system_clock().boot_ns();
  if (times.acknowledged_ns) count_dispatch(times);
}

void Pipeline::State::recorded(uint64_t task) {
  const auto found = open.find(task);
  if (found == open.end()) return;
  round.finish_ns.add(static_cast<uint64_t>(system_clock().boot_ns() - found->second.started_ns));
  open.erase(found);
  if (++ended == to_submit) all_ended->fulfill();
  submit_more();
}

Pipeline::Pipeline(const Address& coordinator, const PipelineOptions& options)
    : state_(std::make_unique<State>(options)) {
  state_->join_all(coordinator);
}

Pipeline::~Pipeline() = default;

PipelineRound Pipeline::run(uint32_t tasks) {
  auto& state = *state_;
  state.round = {};
  state.to_submit = tasks;
  state.submitted = state.ended = 0;
  auto paf = kj::newPromiseAndFulfiller<void>();
  state.all_ended = kj::mv(paf.fulfiller);
  const int64_t start_ns = system_clock().boot_ns();
  const int64_t start_cpu_ns = process_cpu_ns();
  state.submit_more();
  paf.promise.wait(state.loop.wait_scope());
  if (!state.failed.empty()) throw std::runtime_error(state.failed);
  const double seconds = static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9;
  state.round.tasks_per_s = tasks / seconds;
  state.round.own_cpu_us = static_cast<double>(process_cpu_ns() - start_cpu_ns) / 1e3 / tasks;
  return std::move(state.round);
}

}  // namespace tierpilot::bench
