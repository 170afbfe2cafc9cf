// tierctl backup: the coordinator's whole memory in a file.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files/durable_rename.h"
#include "base/files/write_all.h"
#include "base/unique_fd.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

// Making it means copying the whole store.
constexpr int64_t kMakeMs = 3'600'000;

// How many bytes; into a file that gets its name when it is whole and on disk.
Result<uint64_t> fetch(ClusterConnection& connection, const std::string& file) {
  auto made = connection.call(connection.cluster().backupRequest(), kMakeMs);
  if (!made) return tl::unexpected(made.error());
  auto backup = made->getBackup();
  const std::string unfinished = file + ".unfinished";
  const UniqueFd fd(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(errno, unfinished);
  uint64_t offset = 0;
  for (bool end = false; !end;) {
    auto request = backup.readRequest();
    request.setOffset(offset);
    auto answer = connection.call(kj::mv(request));
    if (!answer) return tl::unexpected(answer.error());
    const auto piece = answer->getData().asChars();
    if (auto written = write_all(fd.get(), {piece.begin(), piece.size()}, unfinished); !written)
      return tl::unexpected(written.error());
    offset += piece.size();
    end = answer->getEnd();
  }
  if (::fsync(fd.get()) != 0) return fail_errno(errno, unfinished);
  if (auto named = rename_durably(unfinished, file); !named) return tl::unexpected(named.error());
  return offset;
}

}  // namespace

void add_backup(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("backup", "the coordinator's tasks and weights in a file");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "replaced if it is there")->required();
  on_chosen(*command, context, [&context, file](ClusterConnection& connection) -> Result<int> {
    auto bytes = fetch(connection, *file);
    if (!bytes) {
      std::error_code ignored;
      std::filesystem::remove(*file + ".unfinished", ignored);
      return tl::unexpected(bytes.error());
    }
    const nlohmann::ordered_json written{{"file", *file}, {"bytes", *bytes}};
    return print(
        context.output, {{"backup", written}},
        {{.rows = "/backup", .columns = {{"File", "/file"}, {"Size", "/bytes", Format::kBytes}}}});
  });
}

}  // namespace tierpilot::tierctl
