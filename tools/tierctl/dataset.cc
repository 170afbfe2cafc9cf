// tierctl dataset: named bytes and where they are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/cluster/message_json.h"
#include "tools/cluster/pages.h"
#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

struct AddArguments {
  std::string name, file, node;
  uint64_t zero_bytes = 0, random_bytes = 0, seed = 1;
  bool random = false;
  uint32_t replicas = 0;
  std::string request_id;
};

const std::vector<Column> kColumns{{"DATASET", "/name"},
                                   {"SIZE", "/bytes", Format::kBytes},
                                   {"VERSION", "/version", Format::kNumber},
                                   {"HOME", "/home"},
                                   {"FAST ON", "/fast_on"},
                                   {"SLOW ON", "/slow_on"},
                                   {"KEPT ON", "/kept"},
                                   {"READS", "/reads", Format::kNumber},
                                   {"WRITES", "/writes", Format::kNumber},
                                   {"ORIGIN", "/origin"}};

// Adds the names of the nodes that hold the current version, by tier, and on how many of those that
// are to keep it it is.
ordered_json dataset_json(wire::Dataset::Reader dataset) {
  auto json = message_json(dataset);
  json["fast_on"] = json["slow_on"] = ordered_json::array();
  uint32_t kept = 0;
  for (const auto replica : dataset.getReplicas()) {
    if (replica.getVersion() != dataset.getVersion()) continue;
    if (replica.getInFast()) json["fast_on"].push_back(replica.getNode().cStr());
    if (replica.getInSlow()) json["slow_on"].push_back(replica.getNode().cStr());
    kept += replica.getKept();
  }
  json["nodes_that_keep_it"] = kept;
  json["safe"] = kept >= dataset.getReplicasWanted();
  json["kept"] = fmt::format("{} of {}", kept, dataset.getReplicasWanted());
  return json;
}

std::string absolute(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

Result<int> add(Context& context, ClusterConnection& connection, const AddArguments& arguments) {
  auto request = connection.cluster().datasetAddRequest();
  request.setRequestId(arguments.request_id.empty() ? draw_request_id() : arguments.request_id);
  request.setName(arguments.name);
  request.setNode(arguments.node);
  request.setReplicas(arguments.replicas);
  auto source = request.initSource();
  if (!arguments.file.empty()) {
    source.setFile(absolute(arguments.file));
  } else if (arguments.random) {
    auto random = source.initRandom();
    random.setBytes(arguments.random_bytes);
    random.setSeed(arguments.seed);
  } else {
    source.setZeroBytes(arguments.zero_bytes);
  }
  auto answer = connection.call(kj::mv(request), kDatasetAddMs);
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"dataset", dataset_json(answer->getDataset())}},
               {{.rows = "/dataset", .columns = kColumns}});
}

Result<int> list(Context& context, ClusterConnection& connection) {
  auto datasets = ordered_json::array();
  auto status = for_each_dataset(connection, [&](wire::Dataset::Reader dataset) {
    datasets.push_back(dataset_json(dataset));
  });
  if (!status) return tl::unexpected(status.error());
  return print(context.output, {{"datasets", datasets}},
               {{.rows = "/datasets", .columns = kColumns, .empty = "no datasets"}});
}

Result<int> show(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().datasetShowRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"dataset", dataset_json(answer->getDataset())}},
               {{.rows = "/dataset", .columns = kColumns},
                {.title = "Replicas",
                 .rows = "/dataset/replicas",
                 .columns = {{"NODE", "/node"},
                             {"VERSION", "/version", Format::kNumber},
                             {"IN FAST", "/in_fast"},
                             {"IN SLOW", "/in_slow"},
                             {"KEPT", "/kept"}},
                 .empty = "none"}});
}

Result<int> remove(Context& context, ClusterConnection& connection, const std::string& name) {
  auto request = connection.cluster().datasetRemoveRequest();
  request.setName(name);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return print(context.output, {{"removed", name}},
               {{.rows = "", .columns = {{"removed dataset", "/removed"}}}});
}

void add_add(CLI::App& dataset, Context& context) {
  auto arguments = std::make_shared<AddArguments>();
  auto* sub = dataset.add_subcommand("add", "register bytes under a name");
  sub->add_option("NAME", arguments->name)->required();
  auto* source = sub->add_option_group("source");
  source->add_option("--file", arguments->file, "a file on the node")
      ->type_name("PATH")
      ->check(no_empty_text);
  add_size(*source, "--zero", arguments->zero_bytes, "zeros");
  auto* random = add_size(*source, "--random", arguments->random_bytes, "random bytes");
  source->require_option(1);
  sub->add_option("--seed", arguments->seed, "of the random bytes (default 1)")
      ->check(whole_number());
  sub->add_option("--node", arguments->node, "where its home is; default: the coordinator chooses");
  sub->add_option("--replicas", arguments->replicas,
                  "nodes that are to keep it; default: as the coordinator is configured")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  sub->add_option("--request-id", arguments->request_id, "the same again is the same request")
      ->type_name("ID")
      ->check(no_empty_text);
  on_chosen(*sub, context, [&context, arguments, random](ClusterConnection& connection) {
    arguments->random = random->count() > 0;
    return add(context, connection, *arguments);
  });
}

}  // namespace

void add_dataset(CLI::App& app, Context& context) {
  auto* dataset = app.add_subcommand("dataset", "named bytes that tasks use");
  dataset->require_subcommand(1);
  add_add(*dataset, context);
  on_chosen(*dataset->add_subcommand("list", "all datasets"), context,
            [&context](ClusterConnection& connection) { return list(context, connection); });
  add_by_name(*dataset, context, "show", "one dataset and its replicas", show);
  add_by_name(*dataset, context, "remove", "forget a dataset", remove);
  add_dataset_checks(*dataset, context);
}

}  // namespace tierpilot::tierctl
