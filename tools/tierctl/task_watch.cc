// tierctl task watch: a line each time that the task has got further, until it has ended.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/clock.h"
#include "base/text/printable.h"
#include "tools/cluster/duration.h"
#include "tools/cluster/message_json.h"
#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/task_view.h"

namespace tierpilot::tierctl {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kWatchPollMs = 500;

// By the pace since the first report of this try.
std::string time_left(const ordered_json& first, const ordered_json& last) {
  const auto done = last["iteration"].get<double>() - first["iteration"].get<double>();
  const auto took_ms = last["at_ms"].get<double>() - first["at_ms"].get<double>();
  const auto left = last["iterations"].get<double>() - last["iteration"].get<double>();
  if (done <= 0 || took_ms <= 0 || left <= 0) return "";
  return fmt::format(", {} left", format_duration_ns(left * took_ms / done * 1e6));
}

std::string progress_text(const ordered_json& series) {
  if (series.empty()) return "";
  const auto& last = series.back();
  const auto first = std::find_if(series.begin(), series.end(), [&](const auto& point) {
    return point["attempt"] == last["attempt"];
  });
  auto text = fmt::format(", iteration {}", last["iteration"].get<uint64_t>());
  // A program that goes on beyond what it said.
  const auto all = last["iterations"].get<uint64_t>();
  if (all > 0 && last["iteration"].get<uint64_t>() <= all)
    text += fmt::format(" of {} ({:.0f} %)", all, 100.0 * last["iteration"].get<double>() / all);
  if (last["loss"].is_number()) text += fmt::format(", loss {:.4g}", last["loss"].get<double>());
  text += time_left(*first, last);
  for (const auto& measure : last["measures"])
    text += fmt::format(", {} {}", printable(measure["name"].get<std::string>()),
                        measure_text(measure));
  return text;
}

// Of an elastic task.
std::string cores_text(const ordered_json& share) {
  return share.is_object() ? fmt::format(", on {:.2f} cores", share["cores"].get<double>()) : "";
}

// What is worth a line when it changes.
ordered_json state_of(const ordered_json& task) {
  ordered_json last = task["progress"].empty() ? ordered_json() : task["progress"].back();
  return {{"schema", 1},
          {"id", task["id"]},
          {"state", task["state"]},
          {"reason", task["reason"]},
          {"attempt", task["attempt"]},
          {"restarts", task["restarts"]},
          {"progress", last},
          {"cores", task["share"].is_object() ? task["share"]["cores"] : ordered_json()}};
}

void print_line(const Context& context, const ordered_json& task) {
  if (context.output.json) {
    std::puts(state_of(task).dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
  } else {
    const auto restarts = task["restarts"].get<uint32_t>();
    const auto reason = task["reason"].get<std::string>();
    fmt::print("{:%H:%M:%S} {}{}{}{}{}\n",
               fmt::localtime(static_cast<std::time_t>(system_clock().wall_ms() / 1000)),
               task["state"].get<std::string>(),
               restarts > 0 ? fmt::format(", {} restarts", restarts) : "",
               progress_text(task["progress"]), cores_text(task["share"]),
               reason.empty() ? "" : " (" + printable(reason) + ")");
  }
  std::fflush(stdout);
}

Result<int> watch(Context& context, ClusterConnection& connection, uint64_t id) {
  for (ordered_json before;;) {
    auto request = connection.cluster().taskShowRequest();
    request.setId(id);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto task = task_json(answer->getTask());
    if (auto now = state_of(task); now != before) {
      print_line(context, task);
      before = std::move(now);
    }
    if (has_ended(answer->getTask()))
      return answer->getTask().getState() == "succeeded" ? kExitOk : kExitFailed;
    if (auto slept = connection.wait(connection.loop().after_ms(kWatchPollMs)); !slept)
      return tl::unexpected(slept.error());
  }
}

}  // namespace

void add_task_watch(CLI::App& task, Context& context) {
  auto id = std::make_shared<uint64_t>();
  auto* sub = task.add_subcommand(
      "watch",
      "a line each time that it got further, until it has ended; exit code 1 if it failed");
  sub->add_option("ID", *id)->required()->check(id_number());
  on_chosen(*sub, context, [&context, id](ClusterConnection& connection) {
    return watch(context, connection, *id);
  });
}

}  // namespace tierpilot::tierctl
