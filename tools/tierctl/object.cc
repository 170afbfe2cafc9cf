#include "tools/tierctl/object.h"

#include <CLI/CLI.hpp>

namespace tierpilot::tierctl {

std::string no_empty_text(const std::string& text) {
  return text.empty() ? "it is empty: leave it out, or say which" : "";
}

int run_connected(Context& context, const Verb& verb) {
  auto connection = ClusterConnection::open(context.connect);
  if (!connection) return print_error(context.output, connection.error());
  const auto code = verb(**connection);
  return code ? *code : print_error(context.output, code.error());
}

void on_chosen(CLI::App& sub, Context& context, Verb verb) {
  sub.callback([&context, verb = std::move(verb)] {
    context.command = [&context, verb] { return run_connected(context, verb); };
  });
}

void add_by_name(CLI::App& object, Context& context, const std::string& verb,
                 const std::string& help, NamedVerb run) {
  auto name = std::make_shared<std::string>();
  auto* sub = object.add_subcommand(verb, help);
  sub->add_option("NAME", *name)->required();
  on_chosen(*sub, context, [&context, name, run](ClusterConnection& connection) {
    return run(context, connection, *name);
  });
}

}  // namespace tierpilot::tierctl
