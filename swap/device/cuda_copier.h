// Copies of one thread between a GPU and tiers, in a stream of its own.
#pragma once

#include <span>

#include "swap/device/compute_device.h"
#include "swap/device/cuda_driver.h"
#include "swap/device/pins.h"

namespace tierpilot::swap {

// The device's context is the thread's current one meanwhile.
class Within {
 public:
  Within(const CudaDriver& driver, CudaDriver::Context context) : driver_(driver) {
    driver_.push(context);
  }
  ~Within() {
    CudaDriver::Context popped = nullptr;
    driver_.pop(&popped);
  }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const CudaDriver& driver_;
};

class CudaCopier : public Copier {
 public:
  // All have to outlive it.
  CudaCopier(const CudaDriver& driver, CudaDriver::Context context, Pins& pins)
      : driver_(driver), context_(context), pins_(pins) {
    const Within within(driver_, context_);
    // A device that is full later has no room for a stream. What fails now is tried again.
    (void)begin();
  }
  ~CudaCopier() override;

  Status out(Tier& tier, int64_t offset, const std::byte* data, int64_t bytes) override;
  Status in(Tier& tier, int64_t offset, std::byte* data, int64_t bytes) override;

 private:
  Status begin();
  template <class Copy>
  Status in_pieces(std::span<std::byte> memory, int64_t offset, int64_t bytes, const Copy& copy);
  Status finish();
  Status said(CudaDriver::Code code) const;

  const CudaDriver& driver_;
  CudaDriver::Context context_;
  Pins& pins_;
  CudaDriver::Stream stream_ = nullptr;
  CudaDriver::Event done_ = nullptr;
  Staging staging_{Staging::Pages::kShared}, file_staging_;
  bool staged_ = false;
};

}  // namespace tierpilot::swap
