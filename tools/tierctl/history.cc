// tierctl history export: past tasks as JSON lines, for the simulator and for other programs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/cluster/duration.h"
#include "tools/cluster/pages.h"
#include "tools/tierctl/history_line.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/pseudonym.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

struct Arguments {
  std::string since, until;
  std::string output = "-";
  bool anonymise = false;
  std::string key;
};

struct Summary {
  uint64_t tasks = 0, not_ended = 0, without_data_record = 0;
  std::set<std::string> users;
  std::set<std::string> datasets, of_unknown_size;
  int64_t first_ms = 0, last_ms = 0;  // submitted
};

// Where the lines go. A file gets its name when it is complete.
class Sink {
 public:
  static Result<Sink> open(const std::string& path, std::ostream& standard_output) {
    Sink sink(path, standard_output);
    if (path == "-") return sink;
    // A device or a pipe is written to as it is.
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    const bool in_place = exists(status) && !is_regular_file(status);
    sink.written_ = in_place ? path : path + ".part";
    sink.file_ = std::make_unique<std::ofstream>(sink.written_, std::ios::binary);
    if (!*sink.file_) return sink.failed();
    return sink;
  }
  Sink(Sink&&) = default;
  ~Sink() {
    if (file_ && written_ != path_) std::remove(written_.c_str());
  }

  Status write(const ordered_json& line) {
    auto& out = stream();
    out << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
    if (!out) return failed();
    return {};
  }
  Status close() {
    stream().flush();
    if (!stream()) return failed();
    if (file_ && written_ != path_ && std::rename(written_.c_str(), path_.c_str()) != 0)
      return failed();
    file_.reset();
    return {};
  }

 private:
  Sink(std::string path, std::ostream& out) : path_(std::move(path)), out_(&out) {}
  std::ostream& stream() { return file_ ? *file_ : *out_; }
  tl::unexpected<Error> failed() const {
    return fail_errno(errno, path_ == "-" ? "standard output" : "output " + path_);
  }

  std::string path_, written_;
  std::ostream* out_;
  std::unique_ptr<std::ofstream> file_;
};

class Export {
 public:
  Export(Sink& sink, const Pseudonyms& names) : sink_(sink), names_(names) {}

  Status read_sizes(ClusterConnection& connection) {
    return for_each_dataset(connection, [this](wire::Dataset::Reader dataset) {
      sizes_[dataset.getName()] = dataset.getBytes();
    });
  }

  // The task, after a line for each of its datasets that is new.
  Status add(wire::Task::Reader task) {
    for (const auto use : task.getSpec().getDatasets()) {
      const std::string name = use.getDataset();
      if (!summary_.datasets.insert(name).second) continue;
      const auto size = sizes_.find(name);
      if (size == sizes_.end()) summary_.of_unknown_size.insert(name);
      const auto bytes = size == sizes_.end() ? std::nullopt : std::optional(size->second);
      if (auto written = sink_.write(dataset_line(name, bytes, names_)); !written) return written;
    }
    count(task);
    return sink_.write(task_line(task, names_));
  }

  const Summary& summary() const { return summary_; }

 private:
  void count(wire::Task::Reader task) {
    if (summary_.tasks++ == 0) summary_.first_ms = task.getSubmittedMs();
    summary_.first_ms = std::min(summary_.first_ms, task.getSubmittedMs());
    summary_.last_ms = std::max(summary_.last_ms, task.getSubmittedMs());
    summary_.not_ended += task.getFinishedMs() == 0;
    summary_.without_data_record += !task.hasServed() && task.getSpec().getDatasets().size() > 0;
    summary_.users.insert(task.getUser());
  }

  Sink& sink_;
  const Pseudonyms& names_;
  std::map<std::string, uint64_t> sizes_;
  Summary summary_;
};

int print_summary(const Context& context, const Arguments& arguments, const Summary& summary) {
  ordered_json value{{"tasks", summary.tasks},
                     {"not_ended", summary.not_ended},
                     {"without_data_record", summary.without_data_record},
                     {"users", summary.users.size()},
                     {"datasets", summary.datasets.size()},
                     {"datasets_of_unknown_size", summary.of_unknown_size.size()},
                     {"first_submitted_ms", nullptr},
                     {"last_submitted_ms", nullptr}};
  if (summary.tasks > 0) value["first_submitted_ms"] = summary.first_ms;
  if (summary.tasks > 0) value["last_submitted_ms"] = summary.last_ms;
  // Standard output is for the lines.
  const Output to_stderr(context.output.json, *context.output.err, *context.output.err);
  return print(
      to_stderr, {{"exported", value}},
      {{.title = arguments.output == "-" ? "Exported" : "Exported to " + arguments.output,
        .rows = "/exported",
        .columns = {{"Tasks", "/tasks", Format::kNumber},
                    {"Not ended", "/not_ended", Format::kNumber},
                    {"Without a record of their data", "/without_data_record", Format::kNumber},
                    {"Users", "/users", Format::kNumber},
                    {"Datasets", "/datasets", Format::kNumber},
                    {"Of unknown size (removed)", "/datasets_of_unknown_size", Format::kNumber},
                    {"First submitted", "/first_submitted_ms", Format::kTime},
                    {"Last submitted", "/last_submitted_ms", Format::kTime}}}});
}

// By the coordinator's clock, which the tasks' times are from.
Result<int64_t> coordinator_now_ms(ClusterConnection& connection) {
  auto answer = connection.call(connection.cluster().healthRequest());
  if (!answer) return tl::unexpected(answer.error());
  return answer->getHealth().getNowMs();
}

Result<int> run(Context& context, ClusterConnection& connection, const Arguments& arguments) {
  const auto names = Pseudonyms::make(arguments.anonymise, arguments.key);
  if (!names) return tl::unexpected(names.error());
  const auto now_ms = coordinator_now_ms(connection);
  if (!now_ms) return tl::unexpected(now_ms.error());
  HistorySpan span{.from_ms = 0, .until_ms = *now_ms + 1, .exported_ms = *now_ms};
  for (const auto& [text, bound] :
       {std::pair{&arguments.since, &span.from_ms}, std::pair{&arguments.until, &span.until_ms}}) {
    if (text->empty()) continue;
    const auto at_ms = parse_time_ms(*text, *now_ms);
    if (!at_ms) return tl::unexpected(at_ms.error());
    *bound = *at_ms;
  }
  if (span.from_ms >= span.until_ms)
    return fail(ErrorCode::kInvalid,
                fmt::format("--since {} is not before --until {}: nothing can lie between",
                            arguments.since, arguments.until.empty() ? "now" : arguments.until));
  auto sink = Sink::open(arguments.output, *context.output.out);
  if (!sink) return tl::unexpected(sink.error());
  Export exported(*sink, *names);
  auto status = exported.read_sizes(connection);
  if (status) status = sink->write(header_line(span, *names));
  if (status)
    status = for_each_past_task(connection, span.from_ms, span.until_ms,
                                [&](wire::Task::Reader task) { return exported.add(task); });
  if (status) status = sink->close();
  if (!status) return tl::unexpected(status.error());
  return print_summary(context, arguments, exported.summary());
}

std::string check_time(const std::string& text) {
  const auto at_ms = parse_time_ms(text, 0);
  return at_ms ? std::string() : at_ms.error().message;
}

}  // namespace

void add_history(CLI::App& app, Context& context) {
  auto* history = app.add_subcommand("history", "what the cluster has done");
  history->require_subcommand(1);
  auto arguments = std::make_shared<Arguments>();
  auto* sub = history->add_subcommand("export", "past tasks as JSON lines");
  sub->add_option("--since", arguments->since, "submitted since: 7d (ago), or 2024-01-31 12:00")
      ->check(check_time)
      ->type_name("DURATION|TIME");
  sub->add_option("--until", arguments->until, "submitted before (default: now)")
      ->check(check_time)
      ->type_name("DURATION|TIME");
  sub->add_option("-o,--output", arguments->output, "- is standard output, the default")
      ->type_name("FILE");
  auto* anonymise = sub->add_flag("--anonymise", arguments->anonymise,
                                  "pseudonyms for users, nodes, tasks and datasets");
  sub->add_option("--key", arguments->key,
                  "with equal bytes in it names get equal pseudonyms in every export")
      ->type_name("FILE")
      ->needs(anonymise);
  on_chosen(*sub, context, [&context, arguments](ClusterConnection& connection) {
    return run(context, connection, *arguments);
  });
}

}  // namespace tierpilot::tierctl
