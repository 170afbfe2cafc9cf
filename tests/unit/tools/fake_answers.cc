#include "tests/unit/tools/fake_answers.h"

namespace tierpilot {
namespace {

void fill_look(wire::UnitLook::Builder look, uint32_t unit, const char* refused) {
  look.setNode("n1");
  look.setUnit(unit);
  look.setFreeMilli(250);
  look.initTasks(1).set(0, 77);
  look.setRefused(refused);
}

void keep_back(wire::Task::Builder task) {
  task.setReason("kept back for node 'n1', which is full and has its data");
  auto kept = task.initKeptBack();
  kept.setNode("n1");
  kept.setSinceMs(2'000);
  kept.setUntilMs(int64_t{1} << 50);
}

}  // namespace

void fill_node(wire::NodeEntry::Builder node) {
  auto info = node.initInfo();
  info.setName("n1");
  info.setUnits(2);
  auto tier = info.initTiers(1)[0];
  tier.setTier("fast");
  tier.initReadGbPerS().setValue(10);
  tier.initEvictGbPerS().setUnavailable("nothing was evicted yet");
  auto gpu = info.initGpus(1)[0];  // of which its driver tells no clocks
  gpu.setName("H100");
  gpu.setMemoryBytes(81'559'000'000);
  gpu.setCores(16'896);
  auto shared = info.initSharedUnits(2);
  shared[0].setGpu("GPU-1");
  shared[1].setCores(2);
  node.setState("up");
  node.setKeptBackUnits(5'678);
}

void fill_units(capnp::List<wire::UnitEntry>::Builder units) {
  units[0].setId("n1/gpu/GPU-1");
  units[0].setEngine("gpu");
  units[1].setId("n1/cores/1");
  units[1].setEngine("cpu");
  units[1].setCores(2);
  auto shares = units[1].initShares(2);
  for (uint32_t i = 0; i < shares.size(); ++i) {
    shares[i].setTask(41 + i);
    shares[i].setMilli(200 + 100 * i);
  }
}

void fill_dataset(wire::Dataset::Builder dataset, const std::string& name, uint64_t bytes) {
  dataset.setName(name);
  dataset.setBytes(bytes);
  dataset.setVersion(2);
  auto replicas = dataset.initReplicas(2);
  replicas[0].setNode("n1");
  replicas[0].setVersion(2);
  replicas[0].setInFast(true);
  replicas[1].setNode("n2");
  replicas[1].setVersion(1);  // stale
  replicas[1].setInFast(true);
}

void fill_task(wire::Task::Builder task, uint64_t id, const std::string& state) {
  task.setId(id);
  task.setSubmission(7);
  task.setName("t" + std::to_string(id));
  task.setState(state == "kept back" ? "queued" : state == "a rank" ? "running" : state);
  task.setSubmittedMs(1'000);
  if (state == "kept back") return keep_back(task);
  if (state == "a rank") task.setGang(7);
  task.setStartedMs(1'250);
  if (state == "succeeded" || state == "failed") task.setFinishedMs(2'000);
  auto argv = task.initSpec().initArgv(3);
  argv.set(0, "sh");
  argv.set(1, "-c");
  argv.set(2, "exit 0");
}

void explain_gang(wire::Cluster::TaskExplainResults::Builder results) {
  auto decisions = results.initDecisions(2);
  for (uint32_t d = 0; d < decisions.size(); ++d) {
    decisions[d].setNode("n1");
    decisions[d].initGang();
    auto nodes = decisions[d].initCandidates(3);
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      nodes[i].setNode("n" + std::to_string(i + 1));
      nodes[i].setEligible(d == 1 || i < 2);
      if (d == 1 && i < 2) nodes[i].setRanks(2 - i);
    }
  }
}

void explain_shared(wire::Cluster::TaskExplainResults::Builder results) {
  auto decision = results.initDecisions(1)[0];
  decision.setPolicy("sharing/share");
  decision.setNode("n1");
  decision.setConsidered(2);
  auto looks = decision.initUnits(2);
  fill_look(looks[0], 0, "");
  looks[0].setChosen(true);
  fill_look(looks[1], 1, "250 thousandths are free, 300 needed");
  fill_look(results.initUnits(1)[0], 5, "it is kept for task 78");
}

}  // namespace tierpilot
