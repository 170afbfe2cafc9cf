#include "swap/device/cuda_copier.h"

#include <algorithm>

namespace tierpilot::swap {
namespace {

CudaDriver::Address address_of(const std::byte* data) {
  return reinterpret_cast<CudaDriver::Address>(data);
}

}  // namespace

// In the thread that copies.
Status CudaCopier::begin() {
  if (stream_) return {};
  if (!done_)
    if (auto status = said(driver_.event_create(&done_, CudaDriver::kBlockingWithoutTime)); !status)
      return status;
  if (auto status = said(driver_.stream_create(&stream_, CudaDriver::kNonBlocking)); !status)
    return stream_ = nullptr, status;
  staged_ = driver_.host_register(staging_.data(), Staging::kBytes, CudaDriver::kPortable) == 0;
  return {};
}

template <class Copy>
Status CudaCopier::in_pieces(std::span<std::byte> memory, int64_t offset, int64_t bytes,
                             const Copy& copy) {
  Status status;
  for (int64_t at = 0; at < bytes && status;) {
    const auto part = std::min(bytes - at, pins_.pin(memory, offset + at) - offset - at);
    status = copy(memory.data() + offset + at, at, part);
    at += part;
  }
  // Also where one failed: those before it may still run.
  const auto finished = finish();
  return status ? finished : status;
}

Status CudaCopier::finish() {
  auto status = said(driver_.event_record(done_, stream_));
  if (status) status = said(driver_.event_synchronize(done_));
  // Whatever failed, what still runs uses memory that is to be used for something else.
  if (!status) driver_.stream_synchronize(stream_);
  return status;
}
Status CudaCopier::said(CudaDriver::Code code) const {
  return driver_.checked(code, "a copy of a GPU's");
}

CudaCopier::~CudaCopier() {
  const Within within(driver_, context_);
  if (staged_) driver_.host_unregister(staging_.data());
  if (done_) driver_.event_destroy(done_);
  if (stream_) driver_.stream_destroy(stream_);
}

Status CudaCopier::out(Tier& tier, int64_t offset, const std::byte* data, int64_t bytes) {
  const Within within(driver_, context_);
  if (auto status = begin(); !status) return status;
  const auto from = address_of(data);
  const auto copy = [&](std::byte* to, int64_t at, int64_t part) {
    return said(
        driver_.copy_out(to, from + static_cast<size_t>(at), static_cast<size_t>(part), stream_));
  };
  if (const auto memory = tier.memory(); !memory.empty())
    return in_pieces(memory, offset, bytes, copy);
  for (int64_t at = 0; at < bytes; at += Staging::kBytes) {
    const auto part = std::min(Staging::kBytes, bytes - at);
    auto status = copy(staging_.data(), at, part);
    if (status) status = finish();
    if (status) status = tier.write(offset + at, staging_.data(), part, file_staging_);
    if (!status) return status;
  }
  return {};
}

Status CudaCopier::in(Tier& tier, int64_t offset, std::byte* data, int64_t bytes) {
  const Within within(driver_, context_);
  if (auto status = begin(); !status) return status;
  const auto to = address_of(data);
  const auto copy = [&](const std::byte* from, int64_t at, int64_t part) {
    return said(
        driver_.copy_in(to + static_cast<size_t>(at), from, static_cast<size_t>(part), stream_));
  };
  if (const auto memory = tier.memory(); !memory.empty())
    return in_pieces(memory, offset, bytes, copy);
  for (int64_t at = 0; at < bytes; at += Staging::kBytes) {
    const auto part = std::min(Staging::kBytes, bytes - at);
    auto status = tier.read(offset + at, staging_.data(), part, file_staging_);
    if (status) status = copy(staging_.data(), at, part);
    if (status) status = finish();
    if (!status) return status;
  }
  return {};
}

}  // namespace tierpilot::swap
