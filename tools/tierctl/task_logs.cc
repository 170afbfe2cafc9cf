// tierctl task logs: what a task printed, as raw bytes; -f goes on until the task has ended.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <ostream>

#include <nlohmann/json.hpp>

#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"
#include "tools/tierctl/task_view.h"

namespace tierpilot::tierctl {
namespace {

constexpr uint32_t kChunkBytes = 256 << 10;
constexpr int64_t kLogPollMs = 200;

struct Arguments {
  uint64_t id = 0;
  bool stderr_stream = false;
  bool follow = false;
};

struct TaskNow {
  bool ended;
  uint32_t attempt;
};
Result<TaskNow> look_at(ClusterConnection& connection, uint64_t id) {
  auto request = connection.cluster().taskShowRequest();
  request.setId(id);
  auto answer = connection.call(kj::mv(request));
  if (!answer) return tl::unexpected(answer.error());
  return TaskNow{has_ended(answer->getTask()), answer->getTask().getAttempt()};
}

// Reads from `offset` to what is now the end, giving each piece to `take`.
template <class Take>
Status read_to_end(ClusterConnection& connection, const Arguments& arguments, uint64_t& offset,
                   Take take) {
  for (;;) {
    auto request = connection.cluster().taskLogRequest();
    request.setId(arguments.id);
    request.setStream(arguments.stderr_stream ? "stderr" : "stdout");
    request.setOffset(offset);
    request.setMaxBytes(kChunkBytes);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto data = answer->getData();
    if (answer->getDropped() > 0)
      std::cerr << fmt::format(
          "[{} bytes of this log were dropped: the node keeps the last ones]\n",
          answer->getDropped());
    if (!take(std::string_view(reinterpret_cast<const char*>(data.begin()), data.size())))
      return fail(ErrorCode::kIo, "standard output takes no more: is the disk full?");
    offset += answer->getDropped() + data.size();
    if (answer->getEnd() || data.size() == 0) return {};
  }
}

// Gives what is printed to `take`, until the task has ended.
template <class Take>
Status follow(ClusterConnection& connection, const Arguments& arguments, Take take) {
  uint64_t offset = 0;
  uint32_t attempt = 0;
  for (;;) {  // looked at before it is read: what was printed before the end is read then
    const auto now = look_at(connection, arguments.id);
    if (!now) return tl::unexpected(now.error());
    if (now->attempt != attempt) offset = 0;  // it starts again, with a new log
    attempt = now->attempt;
    if (attempt > 0 || now->ended) {
      auto status = read_to_end(connection, arguments, offset, take);
      // Until the node has its data, a task on a node has no log yet; while a node is away, nobody
      // has. Whether the coordinator itself is tells the next look.
      const bool later = !now->ended && !status &&
                         (status.error().code == ErrorCode::kNotFound ||
                          status.error().code == ErrorCode::kUnreachable);
      if (!status && !later) return status;
    }
    if (now->ended) return {};
    if (auto slept = connection.wait(connection.loop().after_ms(kLogPollMs)); !slept) return slept;
  }
}

Result<int> logs(Context& context, ClusterConnection& connection, const Arguments& arguments) {
  std::string text;
  const auto take = [&](std::string_view piece) {
    if (context.output.json) return text += piece, true;
    auto& out = *context.output.out;
    return out.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush().good();
  };
  uint64_t offset = 0;
  auto status = arguments.follow ? follow(connection, arguments, take)
                                 : read_to_end(connection, arguments, offset, take);
  if (!status) return tl::unexpected(status.error());
  if (!context.output.json) return kExitOk;
  return print(context.output,
               {{"task", arguments.id},
                {"stream", arguments.stderr_stream ? "stderr" : "stdout"},
                {"text", text}},
               {});
}

}  // namespace

void add_task_logs(CLI::App& task, Context& context) {
  auto arguments = std::make_shared<Arguments>();
  auto* sub = task.add_subcommand("logs", "what a task printed");
  sub->add_option("ID", arguments->id)->required()->check(id_number());
  sub->add_flag("--stderr", arguments->stderr_stream, "its standard error");
  sub->add_flag("-f,--follow", arguments->follow, "until the task has ended");
  on_chosen(*sub, context, [&context, arguments](ClusterConnection& connection) {
    return logs(context, connection, *arguments);
  });
}

}  // namespace tierpilot::tierctl
