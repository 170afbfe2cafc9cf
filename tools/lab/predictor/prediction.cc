// tierctl predictor predict: what one training will use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/predict/job_predictor.h"
#include "tools/cluster/program.h"
#include "tools/lab/command.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxPredictorBytes = 64 << 20;

const std::vector<Column> kColumns{
    {"Use, thousandths of a core", "/milli", Format::kNumber},
    {"at most (95 %)", "/milli_upper", Format::kNumber},
    {"Memory beyond the interpreter", "/memory_bytes", Format::kBytes},
    {"at most (99.5 %)", "/memory_upper_bytes", Format::kBytes},
    {"Run time s", "/run_s", Format::kNumber},
    {"at most (95 %) s", "/run_upper_s", Format::kNumber},
    {"Unlike what it was trained on", "/unlike"},
    {"Why", "/why"}};

struct Arguments {
  std::string card, predictor;
  double cores = 1, speed = 1;
};

Result<std::string> read_file(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, fmt::format("'{}' cannot be opened", path));
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (file.bad()) return fail(ErrorCode::kIo, fmt::format("'{}' cannot be read", path));
  if (text.size() > most)
    return fail(ErrorCode::kInvalid, fmt::format("'{}' is larger than {} bytes", path, most));
  return text;
}

Result<sharing::JobPredictor> read_predictor(std::string path) {
  if (path.empty()) {
    auto shipped = find_data_file("job-predictor.json");
    if (!shipped) return tl::unexpected(shipped.error());
    path = shipped->string();
  }
  const auto text = read_file(path, kMaxPredictorBytes);
  if (!text) return tl::unexpected(text.error());
  auto predictor = sharing::JobPredictor::read(*text);
  if (!predictor)
    predictor.error().message = fmt::format("'{}': {}", path, predictor.error().message);
  return predictor;
}

int run(const Context& context, const Arguments& given) {
  const auto text = read_file(given.card, sharing::kMaxCardBytes);
  if (!text) return print_error(context.output, text.error());
  const auto card = sharing::read_card(*text);
  if (!card)
    return print_error(context.output, {card.error().code,
                                        fmt::format("'{}': {}", given.card, card.error().message)});
  const auto predictor = read_predictor(given.predictor);
  if (!predictor) return print_error(context.output, predictor.error());
  const auto said = predictor->predict(
      *card, {.engine = "cpu", .cores_per_unit = given.cores, .relative_speed = given.speed});
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
  return print(context.output, value, {{.rows = "", .columns = kColumns}}, warnings);
}

}  // namespace

void add_prediction(CLI::App& predictor, Context& context) {
  auto* command = predictor.add_subcommand(
      "predict", "what a training will use of a core, its memory and its time, by its model card");
  auto given = std::make_shared<Arguments>();
  command
      ->add_option("CARD", given->card, "CARD.json, by tierpilot.describe() or `model describe -j`")
      ->required();
  command->add_option("--predictor", given->predictor, "by `train` (default: the one installed)")
      ->type_name("FILE.json");
  command->add_option("--cores", given->cores, "of the unit that it runs on")
      ->check(CLI::Range(0.001, 4096.0))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--speed", given->speed, "of such a core, against the one trained on")
      ->check(CLI::Range(0.001, 1000.0))
      ->type_name("X")
      ->capture_default_str();
  command->callback(
      [&context, given] { context.command = [&context, given] { return run(context, *given); }; });
}

}  // namespace tierpilot::lab
