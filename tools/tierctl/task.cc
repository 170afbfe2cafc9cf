// tierctl task: list, show, wait, cancel, pause, resume; submit, logs and explain are in files of
// their own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/bytes.h"
#include "base/clock.h"
#include "tools/cluster/pages.h"
#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/task_tables.h"
#include "tools/tierctl/task_view.h"
#include "tools/tierctl/task_wait.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

// Of a task that is one of very many: what its line says.
ordered_json line_of(wire::Task::Reader task) {
  auto lines = ordered_json::array({task_json(task)});
  add_ages(lines, system_clock().wall_ms());
  ordered_json line;
  for (const auto& column : task_columns()) {
    const ordered_json::json_pointer at(column.pointer);
    if (lines[0].contains(at)) line[at] = std::move(lines[0][at]);
    const ordered_json::json_pointer why(column.pointer + "_unavailable");
    if (lines[0].contains(why)) line[why] = std::move(lines[0][why]);
  }
  return line;
}

Result<int> list(Context& context, ClusterConnection& connection, const TaskFilter& filter) {
  auto tasks = ordered_json::array();
  auto status = for_each_task(connection, filter, [&](wire::Task::Reader task) {
    // Ranks are shown with their gang.
    if (task.getGang() != 0 && !filter.ranks) return;
    tasks.push_back(context.output.json ? task_json(task) : line_of(task));
  });
  if (!status) return tl::unexpected(status.error());
  return print(context.output, {{"tasks", std::move(tasks)}},
               {{.rows = "/tasks", .columns = task_columns(), .empty = "no tasks"}});
}

// Words that a shell would split are quoted, so that the line can be told apart.
std::string command_line(const ordered_json& argv) {
  std::string line;
  for (const auto& entry : argv) {
    const auto word = entry.get<std::string>();
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$") == word.npos;
    line += (line.empty() ? "" : " ") + (plain ? word : '\'' + word + '\'');
  }
  return line;
}

// Nanoseconds as milliseconds beside them, and datasets as "name (write)": for tables only.
void add_readable(ordered_json& task) {
  for (const char* part : {"served", "exit"})
    if (auto& object = task[part]; object.is_object())
      for (const char* key : {"latency", "queued", "evict", "promote", "fetch", "reference",
                              "cpu_user", "cpu_system", "wall"})
        if (const auto ns = object.find(std::string(key) + "_ns"); ns != object.end())
          object[std::string(key) + "_ms"] = ns->get<double>() / 1e6;
  const auto memory_bytes = task["spec"]["memory_bytes"].get<uint64_t>();
  task["memory_limit"] = memory_bytes ? format_bytes(memory_bytes) : "none";
  const auto memory_tier = task["spec"].value("memory_tier", "");
  task["memory_tier"] = memory_tier.empty() ? "by heat" : memory_tier;
  task["command_line"] = command_line(task["spec"]["argv"]);
  task["dataset_uses"] = ordered_json::array();
  for (const auto& use : task["spec"]["datasets"])
    task["dataset_uses"].push_back(use["dataset"].get<std::string>() +
                                   (use["write"] == true ? " (write)" : ""));
}

// In the measures' units; for tables only.
void add_measure_texts(ordered_json& task) {
  if (task["progress"].empty()) return;
  for (auto& measure : task["progress"].back()["measures"]) measure["text"] = measure_text(measure);
}

int print_task(Context& context, wire::Task::Reader reader) {
  auto task = task_json(reader);
  if (!context.output.json && task["spec"].is_object()) add_readable(task);
  if (!context.output.json) add_measure_texts(task);
  auto tables = task_tables(task);
  if (!context.output.json)
    for (auto& table : kept_back_tables(task, system_clock().wall_ms()))
      tables.push_back(std::move(table));
  return print(context.output, {{"task", std::move(task)}}, tables);
}

Result<int> show(Context& context, ClusterConnection& connection, uint64_t id) {
  auto request = connection.cluster().taskShowRequest();
  request.setId(id);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print_task(context, answer->getTask());
}

Result<int> cancel(Context& context, ClusterConnection& connection, uint64_t id) {
  auto request = connection.cluster().taskCancelRequest();
  request.setId(id);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print_task(context, answer->getTask());
}

Result<int> set_paused(Context& context, ClusterConnection& connection, uint64_t id, bool paused) {
  auto request = connection.cluster().taskPauseRequest();
  request.setId(id);
  request.setPaused(paused);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print_task(context, answer->getTask());
}

Result<int> pause(Context& context, ClusterConnection& connection, uint64_t id) {
  return set_paused(context, connection, id, true);
}

Result<int> resume(Context& context, ClusterConnection& connection, uint64_t id) {
  return set_paused(context, connection, id, false);
}

void add_list(CLI::App& task, Context& context) {
  auto filter = std::make_shared<TaskFilter>();
  auto* sub = task.add_subcommand("list", "tasks, oldest first");
  sub->add_option("--state", filter->state)
      ->check(CLI::IsMember(
          {"waiting", "queued", "assigned", "running", "succeeded", "failed", "cancelled"}));
  sub->add_option("--submission", filter->submission, "only tasks of this submission")
      ->check(id_number());
  // Its former name, for scripts.
  sub->add_option("--job", filter->submission)->group("")->check(id_number());
  sub->add_flag("--ranks", filter->ranks, "also those that are ranks of a gang");
  on_chosen(*sub, context, [&context, filter](ClusterConnection& connection) {
    return list(context, connection, *filter);
  });
}

void add_wait(CLI::App& task, Context& context) {
  struct Arguments {
    std::vector<uint64_t> ids;
    int64_t timeout_ms = -1;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* sub = task.add_subcommand("wait", "until tasks have ended; exit code 1 if one failed");
  sub->add_option("ID", arguments->ids)->required()->check(id_number());
  add_duration(*sub, "--timeout", arguments->timeout_ms, "give up after (default: never)");
  on_chosen(*sub, context, [&context, arguments](ClusterConnection& connection) {
    return wait_for_tasks(context, connection, arguments->ids, arguments->timeout_ms);
  });
}

using IdVerb = Result<int> (*)(Context&, ClusterConnection&, uint64_t);
void add_by_id(CLI::App& task, Context& context, const char* verb, const char* help, IdVerb run) {
  auto id = std::make_shared<uint64_t>();
  auto* sub = task.add_subcommand(verb, help);
  sub->add_option("ID", *id)->required()->check(id_number());
  on_chosen(*sub, context, [&context, id, run](ClusterConnection& connection) {
    return run(context, connection, *id);
  });
}

}  // namespace

void add_task(CLI::App& app, Context& context) {
  auto* task = app.add_subcommand("task", "commands that run on the cluster");
  task->require_subcommand(1);
  add_task_submit(*task, context);
  add_list(*task, context);
  add_by_id(*task, context, "show", "one task, its data and its end", show);
  add_wait(*task, context);
  add_by_id(*task, context, "cancel", "end a task, whatever it is doing", cancel);
  add_by_id(*task, context, "pause", "stop a running task where it is; its time limit counts on",
            pause);
  add_by_id(*task, context, "resume", "let a paused task go on", resume);
  add_task_logs(*task, context);
  add_task_explain(*task, context);
  add_task_watch(*task, context);
}

}  // namespace tierpilot::tierctl
