#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "swap/device/compute_device.h"
#include "swap/device/cuda_device.h"
#include "swap/device/process_memory.h"

namespace tierpilot::swap {
namespace {

class ProcessorCopier : public Copier {
 public:
  Status out(Tier& tier, int64_t offset, const std::byte* data, int64_t bytes) override {
    return tier.write(offset, data, bytes, staging_);
  }
  Status in(Tier& tier, int64_t offset, std::byte* data, int64_t bytes) override {
    return tier.read(offset, data, bytes, staging_);
  }

 private:
  Staging staging_;
};

class Processor : public ComputeDevice {
 public:
  const std::string& name() const override { return name_; }
  DeviceMemory& memory() override { return memory_; }
  std::unique_ptr<Copier> copier() override { return std::make_unique<ProcessorCopier>(); }
  Result<std::byte*> take(int64_t bytes) override {
    auto* const data = static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes)));
    if (!data) throw std::bad_alloc();
    std::memset(data, 0x5a, static_cast<size_t>(bytes));
    return data;
  }
  void give(std::byte* data) override { std::free(data); }

 private:
  std::string name_ = "cpu";
  ProcessMemory memory_;
};

}  // namespace

std::unique_ptr<ComputeDevice> processor() {
  return std::make_unique<Processor>();
}

Result<std::unique_ptr<ComputeDevice>> open_device(std::string_view name) {
  if (name.empty() || name == "cpu") return processor();
  if (name == "cuda") return open_cuda(0);
  constexpr std::string_view kCuda = "cuda:";
  int index = 0;
  const auto* const end = name.data() + name.size();
  if (name.starts_with(kCuda)) {
    const auto [at, error] = std::from_chars(name.data() + kCuda.size(), end, index);
    if (error == std::errc() && at == end && index >= 0) return open_cuda(index);
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("device '{}' is not known: say cpu, cuda or cuda:N", name));
}

}  // namespace tierpilot::swap
