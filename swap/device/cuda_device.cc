#include "swap/device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "swap/device/cuda_copier.h"
#include "swap/device/cuda_driver.h"
#include "swap/device/pins.h"

namespace tierpilot::swap {
namespace {

// What the front end's allocator says: what lies free in its cache is no part of it.
class ToldMemory : public DeviceMemory {
 public:
  void tell(int64_t held, int64_t peak) {
    held_ = held;
    peak_ = std::max({peak_.load(), held, peak});
  }
  int64_t now() const override { return held_; }
  int64_t peak() const override { return peak_; }
  void reset_peak() override { peak_ = held_.load(); }
  void give_back() override {}
  void give_back(int64_t) override {}

 private:
  std::atomic<int64_t> held_ = 0, peak_ = 0;
};

class CudaDevice : public ComputeDevice {
 public:
  CudaDevice(const CudaDriver& driver, int index, int device, CudaDriver::Context context)
      : driver_(driver),
        name_(fmt::format("cuda:{}", index)),
        device_(device),
        context_(context),
        pins_(driver_) {}
  ~CudaDevice() override {
    {
      const Within within(driver_, context_);
      pins_.unpin();
      for (const auto event : events_) driver_.event_destroy(event);
    }
    driver_.release(device_);
  }

  const std::string& name() const override { return name_; }
  DeviceMemory& memory() override { return memory_; }
  void tell_memory(int64_t held, int64_t peak) override { memory_.tell(held, peak); }
  std::unique_ptr<Copier> copier() override {
    return std::make_unique<CudaCopier>(driver_, context_, pins_);
  }

  bool runs_ahead() const override { return true; }

  Mark mark(Stream stream) override {
    const Within within(driver_, context_);
    const auto event = free_event();
    if (!event) return kNeverReached;
    if (driver_.event_record(event, reinterpret_cast<CudaDriver::Stream>(stream)) == 0)
      return reinterpret_cast<Mark>(event);
    forget(reinterpret_cast<Mark>(event));
    return kNeverReached;
  }
  Status reach(Mark mark) override {
    if (mark == 0) return {};
    if (mark == kNeverReached)
      return fail(ErrorCode::kUnavailable,
                  name_ + ": the driver has no event for a copy to wait for");
    const Within within(driver_, context_);
    return driver_.checked(driver_.event_synchronize(reinterpret_cast<CudaDriver::Event>(mark)),
                           name_ + ": what a copy has to wait for");
  }
  void forget(Mark mark) override {
    if (mark == 0 || mark == kNeverReached) return;
    const std::lock_guard lock(mutex_);
    free_.push_back(reinterpret_cast<CudaDriver::Event>(mark));
  }

  Result<std::byte*> take(int64_t bytes) override {
    const Within within(driver_, context_);
    CudaDriver::Address address = 0;
    const auto status =
        driver_.checked(driver_.allocate(&address, static_cast<size_t>(bytes)),
                        fmt::format("{}: {} bytes to measure copies with", name_, bytes));
    if (!status) return tl::unexpected(status.error());
    return reinterpret_cast<std::byte*>(address);
  }
  void give(std::byte* data) override {
    const Within within(driver_, context_);
    driver_.free(reinterpret_cast<CudaDriver::Address>(data));
  }

  int sharers(int processes) const override {
    int devices = 0;
    driver_.device_count(&devices);
    return devices > 0 ? (processes + devices - 1) / devices : processes;
  }
  int64_t pinned_bytes() const override { return pins_.bytes(); }
  void unpin() override {
    const Within within(driver_, context_);
    pins_.unpin();
  }

 private:
  static constexpr Mark kNeverReached = ~Mark{0};

  CudaDriver::Event free_event() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const auto event = free_.back();
      free_.pop_back();
      return event;
    }
    CudaDriver::Event event = nullptr;
    if (driver_.event_create(&event, CudaDriver::kBlockingWithoutTime) != 0) return nullptr;
    events_.push_back(event);
    return event;
  }

  const CudaDriver driver_;
  const std::string name_;
  const int device_;
  const CudaDriver::Context context_;
  ToldMemory memory_;
  Pins pins_;
  std::mutex mutex_;
  std::vector<CudaDriver::Event> events_, free_;
};

}  // namespace

Result<std::unique_ptr<ComputeDevice>> open_cuda(int index, const std::string& library) {
  const auto driver = CudaDriver::open(library);
  if (!driver) return tl::unexpected(driver.error());
  auto status = driver->checked(driver->init(0), "the CUDA driver does not begin");
  if (!status) return tl::unexpected(status.error());
  int count = 0, device = 0;
  driver->device_count(&count);
  if (index >= count)
    return fail(ErrorCode::kUnavailable,
                fmt::format("device 'cuda:{}': this process sees {} CUDA devices", index, count));
  CudaDriver::Context context = nullptr;
  status = driver->checked(driver->device(&device, index), fmt::format("device 'cuda:{}'", index));
  if (status)
    status = driver->checked(driver->retain(&context, device),
                             fmt::format("device 'cuda:{}': its context", index));
  if (!status) return tl::unexpected(status.error());
  return std::make_unique<CudaDevice>(*driver, index, device, context);
}

}  // namespace tierpilot::swap
