#include "tests/unit/tools/fake_cluster.h"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "rpc/error.h"
#include "rpc/protocol.h"
#include "rpc/server.h"
#include "tests/unit/tools/fake_answers.h"

namespace tierpilot {
namespace {

void refuse(ErrorCode code, std::string message) {
  kj::throwFatalException(to_exception({code, std::move(message)}));
}

class Server final : public wire::Cluster::Server {
 public:
  explicit Server(FakeState& state) : state_(state) {}

  // Older ones do not know it.
  kj::Promise<void> hello(HelloContext context) override {
    if (!state_.is_of_now) return wire::Cluster::Server::hello(context);
    write_program(own_program("fake"), context.getResults().initProgram());
    return kj::READY_NOW;
  }

  kj::Promise<void> health(HealthContext context) override {
    std::lock_guard lock(state_.mutex);
    if (state_.silent) return kj::NEVER_DONE;
    auto health = context.getResults().initHealth();
    health.setVersion("fake");
    health.setDegraded(state_.degraded);
    health.setNodesUp(1);
    health.setKeptBack(1'234);
    health.setStartedMs(1'000);
    health.setNowMs(61'000);
    return kj::READY_NOW;
  }

  kj::Promise<void> nodeList(NodeListContext context) override {
    fill_node(context.getResults().initNodes(1)[0]);
    return kj::READY_NOW;
  }
  kj::Promise<void> nodeShow(NodeShowContext context) override {
    if (context.getParams().getName() != "n1")
      refuse(ErrorCode::kNotFound,
             "node '" + std::string(context.getParams().getName()) + "' is not known");
    fill_node(context.getResults().initNode());
    return kj::READY_NOW;
  }

  kj::Promise<void> unitList(UnitListContext context) override {
    if (context.getParams().getAfter().size() == 0) fill_units(context.getResults().initUnits(2));
    return kj::READY_NOW;
  }

  kj::Promise<void> datasetAdd(DatasetAddContext context) override {
    std::lock_guard lock(state_.mutex);
    const auto params = context.getParams();
    const std::string name = params.getName();
    if (state_.datasets.contains(name))
      refuse(ErrorCode::kConflict, "dataset '" + name + "' exists");
    const auto source = params.getSource();
    uint64_t bytes = 0;
    if (source.isZeroBytes()) bytes = source.getZeroBytes();
    if (source.isRandom()) bytes = source.getRandom().getBytes() + source.getRandom().getSeed();
    if (source.isFile()) bytes = std::string(source.getFile()).size();
    state_.datasets[name] = bytes;
    fill_dataset(context.getResults().initDataset(), name, bytes);
    return kj::READY_NOW;
  }
  kj::Promise<void> datasetList(DatasetListContext context) override {
    std::lock_guard lock(state_.mutex);
    std::vector<std::pair<std::string, uint64_t>> page;
    for (auto at = state_.datasets.upper_bound(context.getParams().getAfter());
         at != state_.datasets.end() && page.size() < state_.page; ++at)
      page.push_back(*at);
    auto list = context.getResults().initDatasets(static_cast<uint32_t>(page.size()));
    for (uint32_t i = 0; i < list.size(); ++i) fill_dataset(list[i], page[i].first, page[i].second);
    return kj::READY_NOW;
  }
  kj::Promise<void> datasetRemove(DatasetRemoveContext context) override {
    std::lock_guard lock(state_.mutex);
    const std::string name = context.getParams().getName();
    if (!state_.datasets.erase(name))
      refuse(ErrorCode::kNotFound, "dataset '" + name + "' is not known");
    return kj::READY_NOW;
  }

  kj::Promise<void> submit(SubmitContext context) override {
    std::lock_guard lock(state_.mutex);
    const auto params = context.getParams();
    FakeState::Submitted seen{.request_id = params.getRequestId()};
    auto ids = context.getResults().initTasks(params.getTasks().size());
    for (uint32_t i = 0; i < ids.size(); ++i) {
      const auto spec = params.getTasks()[i];
      seen.names.emplace_back(spec.getName());
      const uint64_t id = state_.tasks.size() + 1;
      ids.set(i, id);
      state_.tasks[id] = spec.getArgv()[0] == "false" ? "failed" : "succeeded";
      seen.last_after.clear();
      for (const auto after : spec.getAfter()) seen.last_after.emplace_back(after);
    }
    const auto first = params.getTasks()[0];
    for (const auto word : first.getArgv()) seen.first_argv.emplace_back(word);
    for (const auto use : first.getDatasets())
      seen.first_datasets.push_back(std::string(use.getDataset()) + (use.getWrite() ? ":rw" : ""));
    seen.memory_bytes = first.getMemoryBytes();
    seen.time_limit_ms = first.getTimeLimitMs();
    seen.memory_tier = first.getMemoryTier();
    state_.submits.push_back(std::move(seen));
    context.getResults().setSubmission(7);
    return kj::READY_NOW;
  }
  kj::Promise<void> taskList(TaskListContext context) override {
    std::lock_guard lock(state_.mutex);
    std::vector<std::pair<uint64_t, std::string>> page;
    const std::string wanted = context.getParams().getState();
    for (auto at = state_.tasks.upper_bound(context.getParams().getAfter());
         at != state_.tasks.end() && page.size() < state_.page; ++at)
      if (wanted.empty() || at->second == wanted) page.push_back(*at);
    auto list = context.getResults().initTasks(static_cast<uint32_t>(page.size()));
    for (uint32_t i = 0; i < list.size(); ++i) fill_task(list[i], page[i].first, page[i].second);
    return kj::READY_NOW;
  }
  // A task a page; those that wait count as submitted at another time, so that pages are empty.
  kj::Promise<void> historyTasks(HistoryTasksContext context) override {
    std::lock_guard lock(state_.mutex);
    const auto params = context.getParams();
    state_.history_from_ms = params.getFromMs();
    state_.history_until_ms = params.getUntilMs();
    const auto at = state_.tasks.upper_bound(params.getAfter());
    if (at == state_.tasks.end()) return kj::READY_NOW;
    context.getResults().setNext(at->first);
    if (at->second == "waiting") return kj::READY_NOW;
    auto task = context.getResults().initTasks(1)[0];
    fill_task(task, at->first, at->second);
    task.setUser("eve");
    auto uses = task.getSpec().initDatasets(2);
    uses[0].setDataset("genes");
    uses[0].setWrite(true);
    uses[1].setDataset("gone");
    if (at->second != "succeeded") return kj::READY_NOW;
    task.initServed().setFetchedBytes(5096);
    task.initExit().setWallNs(700'000'000);
    return kj::READY_NOW;
  }
  kj::Promise<void> taskShow(TaskShowContext context) override {
    std::lock_guard lock(state_.mutex);
    const uint64_t id = context.getParams().getId();
    auto task = context.getResults().initTask();
    fill_task(task, id, state_of(id));
    if (!state_.reason.empty()) task.setReason(state_.reason);
    fill_progress(task);
    if (state_.shares.contains(id)) task.initUnitShare().setMilli(state_.shares.at(id));
    return kj::READY_NOW;
  }
  kj::Promise<void> taskWait(TaskWaitContext context) override {
    std::lock_guard lock(state_.mutex);
    const auto ids = context.getParams().getIds();
    auto results = context.getResults();
    auto tasks = results.initTasks(ids.size());
    bool done = true;
    for (uint32_t i = 0; i < ids.size(); ++i) {
      fill_task(tasks[i], ids[i], state_of(ids[i]));
      done = done && (tasks[i].getState() == "succeeded" || tasks[i].getState() == "failed");
    }
    results.setDone(done);
    return kj::READY_NOW;
  }
  kj::Promise<void> taskCancel(TaskCancelContext context) override {
    std::lock_guard lock(state_.mutex);
    const uint64_t id = context.getParams().getId();
    state_of(id) = "cancelled";
    fill_task(context.getResults().initTask(), id, "cancelled");
    return kj::READY_NOW;
  }
  kj::Promise<void> taskPause(TaskPauseContext context) override {
    std::lock_guard lock(state_.mutex);
    const uint64_t id = context.getParams().getId();
    auto task = context.getResults().initTask();
    fill_task(task, id, state_of(id));
    task.setReason(context.getParams().getPaused() ? "paused" : "");
    return kj::READY_NOW;
  }
  kj::Promise<void> taskLog(TaskLogContext context) override {
    std::lock_guard lock(state_.mutex);
    const auto params = context.getParams();
    state_of(params.getId());
    const std::string log = params.getStream() == "stderr" ? "" : state_.log;
    const std::string rest = log.substr(std::min<size_t>(params.getOffset(), log.size()), 3);
    context.getResults().setData(kj::StringPtr(rest.c_str(), rest.size()).asBytes());
    context.getResults().setEnd(params.getOffset() + rest.size() >= log.size());
    return kj::READY_NOW;
  }
  kj::Promise<void> taskExplain(TaskExplainContext context) override {
    std::lock_guard lock(state_.mutex);
    const uint64_t id = context.getParams().getId();
    fill_task(context.getResults().initTask(), id, state_of(id));
    if (state_of(id) == "kept back" || state_of(id) == "a rank") return kj::READY_NOW;
    if (state_of(id) == "shares a unit") {
      explain_shared(context.getResults());
      return kj::READY_NOW;
    }
    if (state_of(id) == "a gang") {
      explain_gang(context.getResults());
      return kj::READY_NOW;
    }
    auto decision = context.getResults().initDecisions(1)[0];
    decision.setPolicy("dqn");
    decision.setNode("n1");
    decision.setDecideNs(1'500'000);
    decision.setReason("largest Q");
    decision.setKeptBackFor("n3");
    decision.setKeptBackMs(4'321);
    auto candidates = decision.initCandidates(2);
    candidates[0].setNode("n1");
    candidates[0].setEligible(true);
    candidates[0].initQ().setValue(0.75);
    candidates[1].setNode("n2");
    candidates[1].initQ().setUnavailable("no free unit");
    decision.initObservation().setUtilisation(0.5);
    auto reward = decision.initReward();
    reward.initReward().setValue(0.625);
    reward.setLatencyTerm(0.25);
    return kj::READY_NOW;
  }

  kj::Promise<void> policyList(PolicyListContext context) override {
    std::lock_guard lock(state_.mutex);
    auto list = context.getResults().initPolicies(2);
    fill_policy(list[0], "random");
    fill_policy(list[1], "dqn");
    return kj::READY_NOW;
  }
  kj::Promise<void> policyShow(PolicyShowContext context) override {
    std::lock_guard lock(state_.mutex);
    fill_policy(context.getResults().initPolicy(), context.getParams().getName());
    context.getResults().initLearner().setReplaySize(12);
    return kj::READY_NOW;
  }
  kj::Promise<void> policyUse(PolicyUseContext context) override {
    std::lock_guard lock(state_.mutex);
    state_.active_policy = context.getParams().getName();
    fill_policy(context.getResults().initPolicy(), state_.active_policy);
    return kj::READY_NOW;
  }
  kj::Promise<void> policyMode(PolicyModeContext context) override {
    std::lock_guard lock(state_.mutex);
    state_.policy_mode = context.getParams().getMode();
    fill_policy(context.getResults().initPolicy(), context.getParams().getName());
    return kj::READY_NOW;
  }
  kj::Promise<void> policyRollback(PolicyRollbackContext context) override {
    std::lock_guard lock(state_.mutex);
    const auto number = context.getParams().getVersion();
    if (number > 3) refuse(ErrorCode::kNotFound, "version 9' is not known");
    auto version = context.getResults().initVersion();
    version.setNumber(number ? number : 3);
    version.setWhy("at its time");
    version.initReward().initMean().setUnavailable("nothing was measured yet");
    return kj::READY_NOW;
  }
  kj::Promise<void> policyCompare(PolicyCompareContext context) override {
    const auto params = context.getParams();
    context.getResults().setConcurrent(!params.hasSecond() || params.getSecond().size() == 0);
    auto row = context.getResults().initComparisons(1)[0];
    row.setMeasure("reward");
    row.setFirst(params.getFirst().size() ? params.getFirst() : "dqn");
    row.setSecond(params.getSecond().size() ? params.getSecond() : "heuristic");
    auto of_first = row.initOfFirst();
    of_first.setCount(7);
    of_first.initMean().setValue(0.5);
    row.initOfSecond().initMean().setUnavailable("nothing was measured yet");
    row.setVerdict("not known yet");
    return kj::READY_NOW;
  }

 private:
  std::string& state_of(uint64_t id) {
    const auto found = state_.tasks.find(id);
    if (found == state_.tasks.end())
      refuse(ErrorCode::kNotFound, "task " + std::to_string(id) + " is not known");
    return found->second;
  }
  void fill_progress(wire::Task::Builder task) const {
    if (state_.measures.empty()) return;
    auto said = task.initProgress(1)[0];
    said.initLoss().setUnavailable("not said");
    auto measures = said.initMeasures(static_cast<uint32_t>(state_.measures.size()));
    uint32_t at = 0;
    for (const auto& [name, value] : state_.measures) {
      measures[at].setName(name);
      measures[at++].initValue().setValue(value);
    }
  }
  void fill_policy(wire::PolicyEntry::Builder policy, const std::string& name) const {
    if (name != "random" && name != "dqn")
      refuse(ErrorCode::kNotFound, "policy '" + name + "' is not known");
    policy.setName(name);
    policy.setActive(name == state_.active_policy);
    policy.setLearns(name == "dqn");
    policy.setMode(state_.policy_mode);
    policy.setStanding("trusted");
    policy.initRewardMean().setUnavailable("no reward yet");
    if (name == "random") return;
    policy.setKeptBack(40);
    policy.setKeptBackReached(30);
    policy.initKeptBackMs().initP50().setValue(1'500);
  }

  FakeState& state_;
};

}  // namespace

FakeCluster::FakeCluster() {
  char name[] = "/tmp/tierpilot-fake-XXXXXX";
  if (!mkdtemp(name)) throw std::runtime_error("mkdtemp");
  folder_ = name;
  thread_ = std::thread([this] {
    EventLoop loop;
    wire::Cluster::Client cluster = kj::heap<Server>(state);
    auto server = RpcServer::listen(
        loop, *Address::parse(address()), nullptr, {},
        [&](const Peer&, const auto&) { return capnp::Capability::Client(cluster); });
    if (!server) throw std::runtime_error(server.error().message);
    loop_ = &loop;
    loop_.notify_all();
    loop.run();
    server->reset();
  });
  loop_.wait(nullptr);
}

void FakeCluster::stop() {
  if (!thread_.joinable()) return;
  loop_.load()->stop();
  thread_.join();
}

FakeCluster::~FakeCluster() {
  stop();
  std::filesystem::remove_all(folder_);
}

}  // namespace tierpilot
