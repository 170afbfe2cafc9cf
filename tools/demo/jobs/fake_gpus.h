// GPUs that the demonstration's nodes see through a driver's library that stands in for NVIDIA's:
// what is trained "on" them is trained on CPUs, but they fail as a driver would tell it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "tools/demo/layout.h"

namespace tierpilot::demo {

class FakeGpus {
 public:
  // `library_folder` has the libnvidia-ml.so.1; what each node's GPU does is kept below `folder`.
  FakeGpus(std::filesystem::path library_folder, std::filesystem::path folder)
      : library_folder_(std::move(library_folder)), folder_(std::move(folder)) {}

  // One for each node, before they start.
  Status add_to(Layout& layout) const;
  static std::string uuid(const std::string& node) { return "GPU-of-" + node; }
  // The driver of the node tells of this error of its GPU.
  void report_xid(const std::string& node, unsigned number) const;

 private:
  std::filesystem::path library_folder_, folder_;
};

}  // namespace tierpilot::demo
