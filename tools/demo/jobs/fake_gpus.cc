#include "tools/demo/jobs/fake_gpus.h"

#include <fmt/format.h>

#include <fstream>

namespace tierpilot::demo {

Status FakeGpus::add_to(Layout& layout) const {
  for (auto& node : layout.nodes) {
    const auto driver = folder_ / node.name;
    std::error_code error;
    std::filesystem::create_directories(driver, error);
    std::ofstream file(driver / "gpus");
    file << uuid(node.name) << '\n';
    if (!file.flush())
      return fail_errno(errno, fmt::format("'{}' cannot be written", (driver / "gpus").string()));
    node.env = {"LD_LIBRARY_PATH=" + library_folder_.string(), "FAKE_NVML=" + driver.string()};
  }
  return {};
}

void FakeGpus::report_xid(const std::string& node, unsigned number) const {
  std::ofstream(folder_ / node / "xids", std::ios::app) << uuid(node) << ' ' << number << '\n';
}

}  // namespace tierpilot::demo
