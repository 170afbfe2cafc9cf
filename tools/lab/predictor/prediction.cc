// tierctl predictor predict: what one training will use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/files/open_to_read.h"
#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/predict/gpu_kinds.h"
#include "policies/sharing/predict/job_predictor.h"
#include "tools/lab/command.h"
#include "tools/lab/predictor/predictor_file.h"
#include "tools/output/arguments.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

std::vector<Column> columns_for(bool gpu, bool has_reason) {
  std::vector<Column> columns{{gpu ? "Use, thousandths of the GPU" : "Use, thousandths of a core",
                               "/milli", Format::kNumber},
                              {"at most (95 %)", "/milli_upper", Format::kNumber},
                              {gpu ? "Memory on the GPU" : "Memory beyond the interpreter",
                               "/memory_bytes", Format::kBytes},
                              {"at most (99.5 %)", "/memory_upper_bytes", Format::kBytes},
                              {"Run time s", "/run_s", Format::kNumber},
                              {"at most (95 %) s", "/run_upper_s", Format::kNumber},
                              {"Unlike what it was trained on", "/unlike"}};
  if (has_reason) columns.push_back({"Why", "/why"});
  return columns;
}

struct Arguments {
  std::string card, predictor, gpu;
  double cores = 1, speed = 1, host_speed = 1;
};

// As the user names it: a GPU that was measured, or features.
Result<sharing::EngineFeatures> engine_of(const Arguments& given,
                                          const sharing::JobPredictor& predictor) {
  if (given.gpu.empty())
    return sharing::EngineFeatures{
        .engine = "cpu", .cores_per_unit = given.cores, .relative_speed = given.speed};
  auto gpu = sharing::parse_gpu(given.gpu, predictor.gpus());
  if (!gpu) return tl::unexpected(gpu.error());
  return sharing::EngineFeatures{.engine = "gpu",
                                 .relative_speed = given.speed,
                                 .gpu = std::move(*gpu),
                                 .host_speed = given.host_speed};
}

int run(const Context& context, const Arguments& given) {
  const auto text = read_small_file(given.card, sharing::kMaxCardBytes);
  if (!text) return print_error(context.output, text.error());
  const auto card = sharing::read_card(*text);
  if (!card)
    return print_error(context.output, {card.error().code,
                                        fmt::format("'{}': {}", given.card, card.error().message)});
  auto model = read_job_model_file(given.predictor);
  if (!model) return print_error(context.output, model.error());
  const sharing::JobPredictor predictor(
      std::make_shared<const sharing::JobModel>(std::move(*model)));
  const auto engine = engine_of(given, predictor);
  if (!engine) return print_error(context.output, engine.error());
  const auto said = predictor.predict(*card, *engine);
  ordered_json value{{"milli", said.milli},
                     {"milli_upper", said.milli_upper},
                     {"memory_bytes", static_cast<uint64_t>(said.memory_bytes)},
                     {"memory_upper_bytes", said.memory_upper_bytes},
                     {"run_s", nullptr},
                     {"run_upper_s", nullptr},
                     {"unlike", said.unlike},
                     {"why", said.why}};
  if (said.run_s > 0) {
    value["run_s"] = said.run_s;
    value["run_upper_s"] = said.run_upper_s;
  } else {
    value["run_s_unavailable"] = value["run_upper_s_unavailable"] =
        "the card does not tell how many iterations there are";
  }
  std::vector<std::string> warnings;
  if (said.unlike) warnings.push_back(said.why + ": the figures are no more than a guess");
  return print(context.output, value,
               {{.rows = "", .columns = columns_for(!given.gpu.empty(), !said.why.empty())}},
               warnings);
}

}  // namespace

void add_prediction(CLI::App& predictor, Context& context) {
  auto* command = predictor.add_subcommand("predict", laboratory_help::kPredictorPredict);
  auto given = std::make_shared<Arguments>();
  command
      ->add_option("CARD", given->card, "CARD.json, by tierpilot.describe() or `model describe -j`")
      ->required();
  command->add_option("--predictor", given->predictor, "by `train` (default: the one installed)")
      ->type_name("FILE.json");
  command
      ->add_option("--gpu", given->gpu,
                   "on a GPU: one that was measured, by name, or its features as NAME=VALUE,... "
                   "with cores, sm_clock_mhz, memory_clock_mhz, bus_width_bits, "
                   "compute_capability, memory_bytes")
      ->type_name("NAME|FEATURES")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("names no GPU") : std::string();
      });
  auto* const gpu = command->get_option("--gpu");
  command
      ->add_option("--cores", given->cores,
                   "of the unit that it runs on; jobs of one thread use one")
      ->excludes(gpu)
      ->check(number_between(0.001, 4096.0))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option(
          "--speed", given->speed,
          "of such a core, against the one trained on; of the GPU, against what is foretold for it")
      ->check(number_between(0.001, 1000.0))
      ->type_name("X")
      ->capture_default_str();
  command
      ->add_option("--host-speed", given->host_speed,
                   "of a core beside the GPU, against those of the machines that were measured")
      ->needs(gpu)
      ->check(number_between(0.25, 4.0))
      ->type_name("X")
      ->capture_default_str();
  command->callback(
      [&context, given] { context.command = [&context, given] { return run(context, *given); }; });
}

}  // namespace tierpilot::lab
