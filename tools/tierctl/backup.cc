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

// The file itself, where `said` is a link to it. Devices and pipes would be replaced by a file.
Result<std::string> file_of(const std::string& said) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto there = fs::status(said, error);
  if (!fs::exists(there)) return said;
  if (!fs::is_regular_file(there))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no plain file: name one, as a backup gets its name when it is "
                            "whole and on disk",
                            said));
  const auto whole = fs::canonical(said, error);
  if (error) return fail_errno(error.value(), said);
  return whole.string();
}

// How many bytes; into a file that gets its name when it is whole and on disk.
Result<uint64_t> fetch(ClusterConnection& connection, const std::string& file,
                       const std::string& unfinished) {
  const UniqueFd fd(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(errno, unfinished);
  auto made = connection.call(connection.cluster().backupRequest(), kMakeMs);
  if (!made) return tl::unexpected(made.error());
  auto backup = made->getBackup();
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
    const auto target = file_of(*file);
    if (!target) return tl::unexpected(target.error());
    const auto unfinished = *target + ".unfinished";
    auto bytes = fetch(connection, *target, unfinished);
    if (!bytes) {
      std::error_code ignored;
      std::filesystem::remove(unfinished, ignored);
      return tl::unexpected(bytes.error());
    }
    const nlohmann::ordered_json written{{"file", *file}, {"bytes", *bytes}};
    return print(
        context.output, {{"backup", written}},
        {{.rows = "/backup", .columns = {{"File", "/file"}, {"Size", "/bytes", Format::kBytes}}}});
  });
}

}  // namespace tierpilot::tierctl
