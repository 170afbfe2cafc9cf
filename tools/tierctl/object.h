// An object of tierctl's command line (node, dataset, task, policy, ...) is one file with one add
// function; main.cc lists them all. The callback of the chosen verb sets context.command, which
// main runs after the line has been parsed.
#pragma once

#include <functional>
#include <string>

#include "tools/cluster/connect_arguments.h"
#include "tools/output/output.h"

namespace tierpilot::tierctl {

struct Context {
  Output output;
  ConnectOptions connect;
  std::function<int()> command;  // returns an ExitCode
};

void add_status(CLI::App& app, Context& context);
void add_node(CLI::App& app, Context& context);
void add_dataset(CLI::App& app, Context& context);
void add_task(CLI::App& app, Context& context);
void add_policy(CLI::App& app, Context& context);
void add_history(CLI::App& app, Context& context);
void add_backup(CLI::App& app, Context& context);
void add_config(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_quality(CLI::App& app, Context& context);
void add_unit(CLI::App& app, Context& context);
void add_model(CLI::App& app, Context& context);
void add_predictor(CLI::App& app, Context& context);

// Verbs of `policy` that need no cluster.
void add_policy_laboratory(CLI::App& policy, Context& context);

void add_unit_laboratory(CLI::App& unit, Context& context);

// Verbs of `dataset` that look at bytes.
void add_dataset_checks(CLI::App& dataset, Context& context);

// Verbs of `node` that change what it gets.
void add_node_orders(CLI::App& node, Context& context);

// Verbs of `task` that have a file of their own.
void add_task_submit(CLI::App& task, Context& context);
void add_task_logs(CLI::App& task, Context& context);
void add_task_explain(CLI::App& task, Context& context);
void add_task_watch(CLI::App& task, Context& context);

// What is wrong with the text of an option that stands for something: a shell's variable that is
// not set is none. Empty: nothing is.
std::string no_empty_text(const std::string& text);

// What a verb does once it is connected; an error is printed and gives the exit code.
using Verb = std::function<Result<int>(ClusterConnection&)>;
int run_connected(Context& context, const Verb& verb);
// Makes `sub` run `verb` when it is chosen.
void on_chosen(CLI::App& sub, Context& context, Verb verb);

// A verb with a NAME: "show NAME".
using NamedVerb = Result<int> (*)(Context&, ClusterConnection&, const std::string& name);
void add_by_name(CLI::App& object, Context& context, const std::string& verb,
                 const std::string& help, NamedVerb run);

}  // namespace tierpilot::tierctl
