#include "tools/demo/training_stage.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tools/demo/guardian.h"
#include "tools/demo/runtime_folder.h"

namespace tierpilot::demo {
namespace {

constexpr const char* kFastParent = "/dev/shm";
constexpr int64_t kGraceMs = 8'000;

}  // namespace

Status prepare(TrainingScript& script) {
  for (auto* path : {&script.file, &script.python_path})
    *path = std::filesystem::absolute(*path).lexically_normal();
  if (!std::filesystem::is_regular_file(script.file))
    return fail(ErrorCode::kNotFound, fmt::format("'{}' is no file", script.file));
  if (std::system("/usr/bin/python3 -c 'import torch' > /dev/null 2>&1") != 0)
    return fail(ErrorCode::kNotFound,
                "the jobs need PyTorch for /usr/bin/python3: apt install python3-torch");
  return {};
}

Result<int> run_on_stage(const StageWork& work) {
  const auto disk = disk_folder();
  RuntimeFolder::remove_stale(disk);
  RuntimeFolder::remove_stale(kFastParent);
  Guardian guardian;
  auto folder = RuntimeFolder::create(disk);
  if (!folder) return tl::unexpected(folder.error());
  auto fast_folder = RuntimeFolder::create(kFastParent);
  if (!fast_folder) return tl::unexpected(fast_folder.error());
  const int code =
      guardian.run([&] { return work(folder->path(), fast_folder->path()); }, kGraceMs);
  if (code > 128)
    fmt::print(stderr, "\nstopped by a signal; all that was started has been ended\n");
  return code;
}

}  // namespace tierpilot::demo
