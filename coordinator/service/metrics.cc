#include "coordinator/service/metrics.h"

#include <algorithm>

#include "base/exposition.h"

namespace tierpilot {
namespace {

// Powers of two, in ns: from about 1 ms to 9 hours, and from about 1 us to 1 s.
constexpr int kTaskFrom = 20, kTaskTo = 45;
constexpr int kDecisionFrom = 10, kDecisionTo = 30;

double number(auto count) {
  return static_cast<double>(count);
}

// A gang that runs is on nodes with its ranks, and a rank that does not run waits for nothing.
size_t parts_of_gangs(const TaskBook& tasks) {
  const auto is_on_node = [](const Task& task) {
    return task.state == TaskState::kAssigned || task.state == TaskState::kRunning;
  };
  size_t parts = 0;
  for (const auto& [gang, ranks] : tasks.ranks()) {
    parts += is_on_node(*tasks.find(gang));
    for (const uint64_t rank : ranks) parts += !is_on_node(*tasks.find(rank));
  }
  return parts;
}

void tasks(Exposition& page, const ClusterState& state) {
  const std::string name = "tierpilot_tasks";
  const std::string help = "Tasks that have not ended, by where they are.";
  const size_t queued = state.tasks.queue().size() + state.tasks.shared_queue().size();
  size_t on_nodes = 0;
  for (const auto& [node, record] : state.registry.all()) on_nodes += record.tasks_left();
  const size_t known = state.tasks.all().size();
  const auto is_whole = [&](uint64_t id) {
    const auto* task = state.tasks.find(id);
    return task && !task->rank;
  };
  const auto ending = std::ranges::count_if(state.refused_ends, is_whole);
  const size_t elsewhere =
      queued + on_nodes + static_cast<size_t>(ending) + parts_of_gangs(state.tasks);
  page.gauge(name, help, number(queued), {{"state", "queued"}});
  page.gauge(name, help, number(on_nodes), {{"state", "on_node"}});
  page.gauge(name, help, number(known - std::min(known, elsewhere)), {{"state", "waiting"}});
  page.gauge(name, help, number(ending), {{"state", "ending"}});
  page.gauge("tierpilot_tasks_kept_back", "Queued tasks that wait for a node that is full.",
             number(state.held.size()));
}

void ends(Exposition& page, const Scoreboard::Ends& ends) {
  for (const auto state : {TaskState::kSucceeded, TaskState::kFailed, TaskState::kCancelled}) {
    const auto found = ends.tasks.find(state);
    page.counter("tierpilot_tasks_ended_total", "Tasks whose end was written down since the start.",
                 found == ends.tasks.end() ? 0 : number(found->second),
                 {{"state", task_state_name(state)}});
  }
  page.histogram("tierpilot_task_wait_seconds", "From the submission of a task to its start.",
                 ends.wait_ns, kTaskFrom, kTaskTo);
  page.histogram("tierpilot_task_response_seconds", "From the submission of a task to its end.",
                 ends.response_ns, kTaskFrom, kTaskTo);
}

void nodes(Exposition& page, const Registry& registry) {
  std::map<std::string_view, size_t> lives;
  size_t connected = 0;
  for (const auto& [name, node] : registry.all()) {
    ++lives[node.life_name()];
    connected += node.can_be_asked();
  }
  for (const char* const life : {node_life_name(NodeLife::kExpected), node_life_name(NodeLife::kUp),
                                 node_life_name(NodeLife::kLost), kStoppedNode})
    page.gauge("tierpilot_nodes", "Nodes that have joined, by what became of them.",
               number(lives[life]), {{"state", life}});
  page.gauge("tierpilot_nodes_connected", "Nodes that are up and connected.", number(connected));
  page.gauge("tierpilot_compute_units", "Compute units of the nodes that are up.",
             number(registry.summary().total_units));
  page.gauge("tierpilot_compute_units_busy", "Of these, those that run a task.",
             number(registry.summary().busy_units));
}

void policies(Exposition& page, const Core& core) {
  for (const auto& [policy, score] : core.state.scores.policies()) {
    const Exposition::Labels label{{"policy", policy}};
    page.counter("tierpilot_decisions_total", "Decisions while the policy was active.",
                 number(score.decisions), label);
    page.counter("tierpilot_decision_fallbacks_total",
                 "Decisions that the fallback heuristic took in the policy's place.",
                 number(score.fallbacks), label);
    page.histogram("tierpilot_decision_seconds", "How long decisions took.", score.decide_ns,
                   kDecisionFrom, kDecisionTo, label);
    page.counter("tierpilot_rewards_total", "Decisions whose reward was measured.",
                 number(score.rewards), label);
    if (score.rewards > 0)
      page.gauge("tierpilot_reward_mean", "Mean measured reward of the policy's decisions.",
                 score.reward_sum / number(score.rewards), label);
  }
}

}  // namespace

std::string coordinator_metrics(const Core& core, uint64_t rejected_frames) {
  const auto& state = core.state;
  Exposition page;
  page.gauge("tierpilot_build_info", "Always 1; the version is a label.", 1,
             {{"version", TIERPILOT_VERSION}});
  page.process();
  tasks(page, state);
  ends(page, state.scores.ends());
  nodes(page, state.registry);
  policies(page, core);
  page.gauge("tierpilot_datasets", "Datasets in the catalog.", number(state.catalog.all().size()));
  page.gauge(
      "tierpilot_datasets_short_of_copies",
      "Datasets that fewer nodes that are up keep than are to: lost with the next of them, or "
      "away already.",
      number(core.replicator.short_of_copies()));
  page.gauge("tierpilot_store_failing", "1 while the store cannot be written.",
             state.store.trouble().empty() ? 0 : 1);
  page.gauge("tierpilot_task_waits", "Ends of tasks that clients wait for.", number(core.waits()));
  page.counter("tierpilot_rejected_frames_total", "Messages that were no valid frames.",
               number(rejected_frames));
  return page.text();
}

}  // namespace tierpilot
