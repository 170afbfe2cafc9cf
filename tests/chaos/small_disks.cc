#include "tests/chaos/small_disks.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "base/unique_fd.h"

namespace tierpilot::chaos {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSize = "size=16m";
constexpr const char* kSlowBudget = "12MiB";
constexpr const char* kFiller = "filler";
constexpr size_t kBlock = 4096;

}  // namespace

SmallDisks::SmallDisks(int nodes) : nodes_(nodes), folder_("/tmp") {
  for (int node = 0; node < nodes; ++node) {
    for (const auto& disk : {work_disk(node), slow_disk(node)}) {
      fs::create_directory(disk);
      if (::mount("tierpilot-chaos", disk.c_str(), "tmpfs", 0, kSize) != 0)
        throw std::system_error(errno, std::generic_category(), disk.string());
    }
  }
}

SmallDisks::~SmallDisks() {
  for (int node = 0; node < nodes_; ++node)
    for (const auto& disk : {work_disk(node), slow_disk(node)}) ::umount2(disk.c_str(), MNT_DETACH);
}

void SmallDisks::arrange(test::ClusterOptions& options) {
  options.work_dir = [this](int node) { return work_disk(node) / "work"; };
  options.slow_dir = [this](int node) { return slow_disk(node) / "tier"; };
  options.slow_budget = kSlowBudget;
}

void SmallDisks::fill(const fs::path& disk) {
  const UniqueFd file(
      ::open((disk / kFiller).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::vector<char> block(kBlock);
  while (::write(file.get(), block.data(), block.size()) > 0) {
  }
}

void SmallDisks::empty(int node) {
  std::error_code ignored;
  for (const auto& disk : {work_disk(node), slow_disk(node)}) fs::remove(disk / kFiller, ignored);
}

fs::path SmallDisks::work_disk(int node) const {
  return folder_.path() / test::Cluster::node_name(node);
}

fs::path SmallDisks::slow_disk(int node) const {
  return folder_.path() / (test::Cluster::node_name(node) + "-slow");
}

}  // namespace tierpilot::chaos
