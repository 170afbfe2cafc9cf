// tierctl predictor train: a predictor of measured trainings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files/open_to_read.h"
#include "base/text/json_text.h"
#include "policies/learning/saved_bytes.h"
#include "policies/sharing/predict/core_pairs.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "tools/lab/command.h"
#include "tools/lab/predictor/predictor_file.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;
using sharing::JobModel;
using sharing::MeasuredTraining;

const std::vector<Column> kTrained{
    {"Predictor", "/predictor"},
    {"Configurations", "/configurations", Format::kNumber},
    {"Architectures", "/architectures", Format::kNumber},
    {"95 % of times stay below, times what is foretold", "/upper/time", Format::kNumber},
    {"99.5 % of memory", "/upper/memory", Format::kNumber},
    {"Speed kept beside another", "/kept_beside_another", Format::kPercent},
    {"GPUs", "/gpus"},
    {"Configurations on GPUs", "/gpu_configurations", Format::kNumber},
    {"95 % of use stay below, times what is foretold", "/gpu_upper/use", Format::kNumber},
    {"95 % of times", "/gpu_upper/time", Format::kNumber},
    {"99.5 % of memory", "/gpu_upper/memory", Format::kNumber}};

struct Arguments {
  std::vector<std::string> data;
  std::string pairs, cores, out;
};

// Of all tables, by engine.
struct Measured {
  std::vector<MeasuredTraining> cores, gpus;
  std::string cores_table;  // the first that tells of cores
  uint64_t skipped = 0;
  std::string first_skipped;
};

// Of the core that the table was measured on, as its description beside it says; 0: it does not.
double float32_ops_per_s(const std::string& table) {
  constexpr size_t kMostBytes = 1 << 20;
  const auto text =
      read_small_file(std::filesystem::path(table).replace_extension(".json"), kMostBytes);
  if (!text) return 0;
  const auto described = parse_json_or_discard<nlohmann::json>(*text);
  if (!described.is_object() || !described.contains("machine")) return 0;
  const auto& machine = described["machine"];
  const auto found = machine.is_object() ? machine.find("float32_ops_per_s") : machine.end();
  return found != machine.end() && found->is_number() ? std::max(0.0, found->get<double>()) : 0;
}

Status add_table(const std::string& path, Measured& to) {
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  if (!sharing::is_training_table(*table))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no table of `tierctl predictor collect`", path));
  auto read = sharing::read_trainings(*table);
  if (!read) return tl::unexpected(read.error());
  const double ops_per_s = float32_ops_per_s(path);
  for (auto& row : read->rows) {
    row.host_ops_per_s = ops_per_s;
    if (!row.gpu && to.cores_table.empty()) to.cores_table = path;
    (row.gpu ? to.gpus : to.cores).push_back(std::move(row));
  }
  if (to.skipped == 0) to.first_skipped = read->first_skipped;
  to.skipped += read->skipped;
  return {};
}

// What trainings keep beside each other; nothing without a table.
Result<std::optional<sharing::PairPrior>> fit_pairs(const std::string& path) {
  if (path.empty()) return std::nullopt;
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  if (!sharing::is_pair_table(*table))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no table of `tierctl predictor collect --pairs`", path));
  const auto pairs = sharing::read_pairs(*table);
  if (!pairs) return tl::unexpected(pairs.error());
  auto prior = sharing::fit_pair_prior(*pairs);
  if (!prior) return fail(prior.error().code, path + ": " + prior.error().message);
  return std::move(*prior);
}

// Where no table tells of cores, what another predictor knows of them is kept.
Result<JobModel> fit_cores(const Measured& measured, const std::string& known) {
  if (measured.cores.empty()) return read_job_model_file(known);
  auto model = sharing::fit_job_model(measured.cores);
  model.float32_ops_per_s = float32_ops_per_s(measured.cores_table);
  return model;
}

ordered_json described(const JobModel& model, const Measured& measured, const std::string& out) {
  std::set<std::string> architectures;
  for (const auto* rows : {&measured.cores, &measured.gpus})
    for (const auto& row : *rows) architectures.insert(row.architecture);
  ordered_json value{
      {"predictor", out},
      {"configurations", measured.cores.size()},
      {"architectures", architectures.size()},
      {"skipped", measured.skipped},
      {"busy_margin", model.busy_margin},
      {"memory_margin", model.memory_margin},
      {"upper", {{"time", std::exp(model.busy_margin)}, {"memory", std::exp(model.memory_margin)}}},
      {"kept_beside_another", model.pairs ? ordered_json(std::exp(model.pairs->ln)) : nullptr},
      {"gpus", ordered_json::array()},
      {"gpu_configurations", measured.gpus.size()},
      {"gpu_margins", nullptr},
      {"gpu_upper", nullptr}};
  if (!model.gpu) return value;
  for (const auto& kind : model.gpu->kinds) value["gpus"].push_back(kind.name);
  const auto& margins = model.gpu->margins;
  value["gpu_margins"] = {
      {"milli", margins.milli}, {"run", margins.run}, {"memory", margins.memory}};
  value["gpu_upper"] = {{"use", std::exp(margins.milli)},
                        {"time", std::exp(margins.run)},
                        {"memory", std::exp(margins.memory)}};
  return value;
}

// What was measured is not written over, nor any other file that is no predictor.
Status may_be_written(const Arguments& given) {
  std::error_code ignored;
  if (!std::filesystem::exists(given.out, ignored)) return {};
  for (const auto& path : given.data)
    if (std::filesystem::equivalent(path, given.out, ignored))
      return fail(ErrorCode::kInvalid,
                  fmt::format("'{}' is one of the tables: name another --out", given.out));
  if (!read_job_model_file(given.out))
    return fail(ErrorCode::kConflict,
                fmt::format("'{}' is there already and is no predictor: name another --out, or "
                            "remove it",
                            given.out));
  return {};
}

// Predictions from few architectures are far off for others, and by how much nobody can tell.
constexpr size_t kFewArchitectures = 5;

std::vector<std::string> warnings_about(const Measured& measured) {
  std::vector<std::string> warnings;
  if (measured.skipped > 0) warnings.push_back("rows were skipped: " + measured.first_skipped);
  for (const auto& [rows, engine] :
       {std::pair(&measured.cores, "cores"), std::pair(&measured.gpus, "GPUs")}) {
    std::set<std::string> architectures;
    for (const auto& row : *rows) architectures.insert(row.architecture);
    if (!rows->empty() && architectures.size() < kFewArchitectures)
      warnings.push_back(fmt::format(
          "on {} only {} architectures were measured: how far it is off for others is not known, "
          "and what it says is at most so much may be far too little",
          engine, architectures.size()));
  }
  return warnings;
}

int train(const Context& context, const Arguments& given) {
  if (auto may = may_be_written(given); !may) return print_error(context.output, may.error());
  Measured measured;
  for (const auto& path : given.data)
    if (auto added = add_table(path, measured); !added)
      return print_error(context.output, added.error());
  auto prior = fit_pairs(given.pairs);
  if (!prior) return print_error(context.output, prior.error());
  auto model = fit_cores(measured, given.cores);
  if (!model) return print_error(context.output, model.error());
  if (*prior) model->pairs = std::move(*prior);
  if (!measured.gpus.empty()) model->gpu = sharing::fit_gpu_model(measured.gpus);
  const auto text = sharing::job_model_json(*model).dump(1) + '\n';
  if (auto saved = save_bytes(given.out, text, 0666); !saved)
    return print_error(context.output, saved.error());
  return print(context.output, described(*model, measured, given.out),
               {{.rows = "", .columns = kTrained}}, warnings_about(measured));
}

}  // namespace

void add_training(CLI::App& predictor, Context& context) {
  auto* command = predictor.add_subcommand("train", laboratory_help::kPredictorTrain);
  auto given = std::make_shared<Arguments>();
  command
      ->add_option("--data", given->data,
                   "what `tierctl predictor collect` wrote; several tables, of cores and of GPUs, "
                   "one after the other")
      ->required()
      ->type_name("FILE.csv")
      ->expected(1, 1000);
  command
      ->add_option("--pairs", given->pairs,
                   "what `tierctl predictor collect --pairs` wrote: it learns slow-downs by "
                   "neighbours, too")
      ->type_name("FILE.csv");
  command
      ->add_option("--cores", given->cores,
                   "where no table tells of cores: the predictor whose knowledge of them is kept "
                   "(default: the one installed)")
      ->type_name("FILE.json");
  command->add_option("--out", given->out, "the predictor")->required()->type_name("FILE.json");
  command->callback([&context, given] {
    context.command = [&context, given] { return train(context, *given); };
  });
}

}  // namespace tierpilot::lab
