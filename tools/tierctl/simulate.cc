// tierctl simulate: becomes the program that has policies in it (tools/lab).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>

#include "tools/cluster/program.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

int become_lab(const Context& context, std::vector<std::string> words) {
  const auto program = find_program("tierpilot-lab");
  if (!program) return print_error(context.output, program.error());
  if (context.output.json) words.insert(words.begin(), "-j");
  words.insert(words.begin(), program->string());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program->c_str(), argv.data());
  return print_error(
      context.output,
      fail_errno(errno, fmt::format("'{}' cannot be run", program->string())).value());
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  auto* simulate = app.add_subcommand(
      "simulate", "run a workload under several policies on a described cluster");
  simulate->prefix_command();
  simulate->set_help_flag();  // the other program has the options
  simulate->callback([&context, simulate] {
    auto words = simulate->remaining();
    words.insert(words.begin(), "simulate");
    context.command = [&context, words] { return become_lab(context, words); };
  });
}

}  // namespace tierpilot::tierctl
