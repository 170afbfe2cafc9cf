// tierctl model describe: what a model is made of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/open_to_read.h"
#include "base/text/json_text.h"
#include "policies/sharing/card/onnx_model.h"
#include "tools/lab/command.h"
#include "tools/lab/guarded.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

const std::vector<Column> kTotals{{"Batch", "/batch", Format::kNumber},
                                  {"Input elements", "/input_elements", Format::kNumber},
                                  {"Parameters", "/parameters", Format::kNumber},
                                  {"Parameter bytes", "/parameter_bytes", Format::kBytes},
                                  {"Activation bytes", "/activation_bytes", Format::kBytes},
                                  {"Memory traffic", "/traffic_bytes", Format::kBytes},
                                  {"FLOPs of a forward pass", "/flops", Format::kNumber},
                                  {"Depth", "/depth", Format::kNumber},
                                  {"Uncertain", "/uncertain"},
                                  {"Why", "/why"}};
const std::vector<Column> kOperators{{"OPERATOR", "/operator"},
                                     {"COUNT", "/count", Format::kNumber},
                                     {"LARGEST INPUT", "/largest_input", Format::kNumber},
                                     {"INPUTS", "/input_sum", Format::kNumber},
                                     {"OUTPUTS", "/output_sum", Format::kNumber},
                                     {"FLOPS", "/flops", Format::kNumber}};

Result<std::string> read_model(const std::string& path) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  // Devices may have no end.
  if (std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status))
    return fail(ErrorCode::kInvalid, fmt::format("model '{}' is neither a file nor a pipe", path));
  return read_small_file(path, sharing::kMaxModelBytes).map_error([](Error error) {
    error.message = "model " + error.message;
    return error;
  });
}

Result<std::string> describe(const std::string& path, std::optional<uint32_t> batch) {
  const auto content = read_model(path);
  if (!content) return tl::unexpected(content.error());
  const auto card = sharing::describe_onnx(*content, path, batch);
  if (!card) return tl::unexpected(card.error());
  return card_json(*card).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// For people an operator is a row.
ordered_json rows_of(const ordered_json& operators) {
  ordered_json rows = ordered_json::array();
  for (const auto& [kind, use] : operators.items()) {
    rows.push_back({{"operator", kind}});
    rows.back().update(use);
  }
  return rows;
}

// What makes it uncertain.
struct Doubts {
  ordered_json unknown = ordered_json::object(), control = ordered_json::object();
  std::vector<std::string> all;
};

Doubts doubts_about(const ordered_json& card) {
  Doubts doubts;
  for (const auto& [name, count] : card["unknown_operators"].items())
    (name == "If" || name == "Loop" || name == "Scan" ? doubts.control : doubts.unknown)[name] =
        count;
  if (!doubts.unknown.empty())
    doubts.all.push_back("operators nobody knows: " + doubts.unknown.dump());
  if (!doubts.control.empty())
    doubts.all.push_back("what these run is counted once, however often they do: " +
                         doubts.control.dump());
  if (const auto values = card["unknown_shapes"].get<uint64_t>(); values > 0)
    doubts.all.push_back(
        fmt::format("the sizes of {} values are not known and count as nothing", values));
  for (const auto& guess : card["guessed"])
    doubts.all.push_back(
        fmt::format("the file leaves a size open: {}", guess.get_ref<const std::string&>()));
  return doubts;
}

int run(const Context& context, const std::string& path, std::optional<uint32_t> batch) {
  const auto text = in_guarded_child(path, [&] { return describe(path, batch); });
  if (!text) return print_error(context.output, text.error());
  auto value = parse_json<ordered_json>(*text);
  const auto doubts = doubts_about(value);
  std::vector<std::string> warnings;
  if (!value["unknown_operators"].empty() || value["unknown_shapes"] > 0) warnings = doubts.all;
  if (context.output.json) return print(context.output, value, {}, warnings);
  value["why"] = doubts.all.empty() ? "" : fmt::format("{}", fmt::join(doubts.all, "; "));
  value["rows"] = rows_of(value["operators"]);
  return print(context.output, value,
               {{.rows = "", .columns = kTotals}, {.rows = "/rows", .columns = kOperators}},
               warnings);
}

}  // namespace

void add_model(CLI::App& app, Context& context) {
  auto* model = app.add_subcommand("model", laboratory_help::kModel);
  model->require_subcommand(1);
  auto* describe = model->add_subcommand("describe", laboratory_help::kModelDescribe);
  struct Arguments {
    std::string path;
    std::optional<uint32_t> batch;
  };
  auto given = std::make_shared<Arguments>();
  describe->add_option("FILE", given->path, "FILE.onnx")->required();
  describe
      ->add_option("--batch", given->batch,
                   "samples at a time, where the file leaves it open (default 1)")
      ->check(CLI::Range(1U, 1'000'000U))
      ->type_name("N");
  describe->callback([&context, given] {
    context.command = [&context, given] { return run(context, given->path, given->batch); };
  });
}

}  // namespace tierpilot::lab
