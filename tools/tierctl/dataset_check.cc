// tierctl dataset verify, repair: the copies' bytes, read where they are.
#include <CLI/CLI.hpp>

#include "tools/cluster/message_json.h"
#include "tools/cluster/pages.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

struct CheckArguments {
  std::string name;
  bool all = false;
  bool repair = false;
};

const std::vector<Column> kCopyColumns{
    {"DATASET", "/dataset"}, {"VERSION", "/version", Format::kNumber},
    {"NODE", "/node"},       {"FAST", "/fast"},
    {"SLOW", "/slow"},       {"RESULT", "/result"}};

bool is_damaged(const ordered_json& copy) {
  return copy["fast"] == "damaged" || copy["slow"] == "damaged";
}

// In a word: good, damaged, restored, not read.
std::string result_of(const ordered_json& copy) {
  if (copy["restored"].get<bool>()) return "restored";
  if (is_damaged(copy)) return "damaged";
  return copy["error"].get<std::string>().empty() ? "good" : "not read";
}

Result<ordered_json> check(ClusterConnection& connection, const std::string& name, bool repair) {
  auto request = connection.cluster().datasetCheckRequest();
  request.setName(name);
  request.setRepair(repair);
  auto answer = connection.call(kj::mv(request), kDatasetCheckMs);
  if (!answer) return tl::unexpected(answer.error());
  auto json = message_json(answer->getCheck());
  bool good = false, well = true;
  for (auto& copy : json["copies"]) {
    copy["result"] = result_of(copy);
    copy["dataset"] = name;
    copy["version"] = json["version"];
    good |= copy["fast"] == "good" || copy["slow"] == "good" || copy["result"] == "restored";
    well &= copy["result"] == "good" || copy["result"] == "restored";
  }
  json["readable"] = good;
  json["good"] = good && well;
  return json;
}

Result<int> run(Context& context, ClusterConnection& connection, const CheckArguments& arguments) {
  std::vector<std::string> names;
  if (arguments.all) {
    auto listed = for_each_dataset(connection, [&](wire::Dataset::Reader dataset) {
      names.emplace_back(dataset.getName().cStr());
    });
    if (!listed) return tl::unexpected(listed.error());
  } else {
    names.push_back(arguments.name);
  }
  auto checks = ordered_json::array();
  auto copies = ordered_json::array();
  bool good = true;
  for (const auto& name : names) {
    auto one = check(connection, name, arguments.repair);
    // One that was removed meanwhile is none of --all.
    if (!one && arguments.all && one.error().code == ErrorCode::kNotFound) continue;
    if (!one) return tl::unexpected(one.error());
    good &= (*one)["good"].get<bool>();
    for (const auto& copy : (*one)["copies"]) copies.push_back(copy);
    if ((*one)["copies"].empty())
      copies.push_back({{"dataset", name},
                        {"version", (*one)["version"]},
                        {"node", ""},
                        {"fast", ""},
                        {"slow", ""},
                        {"result", "no node that is up holds it"}});
    checks.push_back(std::move(*one));
  }
  const int printed =
      print(context.output, {{"good", good}, {"datasets", checks}, {"copies", copies}},
            {{.rows = "/copies", .columns = kCopyColumns, .empty = "no datasets"}});
  return printed == kExitOk && !good ? kExitFailed : printed;
}

void add_verb(CLI::App& dataset, Context& context, const char* verb, const char* help,
              bool repair) {
  auto arguments = std::make_shared<CheckArguments>();
  arguments->repair = repair;
  auto* sub = dataset.add_subcommand(verb, help);
  auto* which = sub->add_option_group("which");
  which->add_option("NAME", arguments->name);
  which->add_flag("--all", arguments->all, "every dataset");
  which->require_option(1);
  on_chosen(*sub, context, [&context, arguments](ClusterConnection& connection) {
    return run(context, connection, *arguments);
  });
}

}  // namespace

void add_dataset_checks(CLI::App& dataset, Context& context) {
  add_verb(dataset, context, "verify", "read every copy and compare it with its checksum", false);
  add_verb(dataset, context, "repair", "the same, and make damaged copies anew from good ones",
           true);
}

}  // namespace tierpilot::tierctl
