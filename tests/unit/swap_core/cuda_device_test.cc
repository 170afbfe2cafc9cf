// Copies of a GPU, by a stand-in for its driver: what a stream was told before them is heeded, and
// the memory of tiers is pinned once.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fake_cuda.h"
#include "swap/device/cuda_device.h"
#include "swap/transfers.h"

namespace tierpilot::swap {
namespace {

constexpr int64_t kMiB = 1 << 20;
using Bytes = std::vector<std::byte>;

// A kernel that takes its time.
struct SlowCopy {
  Bytes& from;
  Bytes& to;
  static void run(void* self) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto& kernel = *static_cast<SlowCopy*>(self);
    std::memcpy(kernel.to.data(), kernel.from.data(), kernel.to.size());
  }
};

Bytes pattern(int64_t bytes, int seed) {
  Bytes data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(i * 31 + i / 977 + static_cast<size_t>(seed));
  return data;
}

class Gpu {
 public:
  explicit Gpu(std::string_view tiers) : device_(std::move(*open_device("cuda:0"))) {
    auto measured_tiers = measured(std::move(*tiers_of(tiers)), *device_);
    EXPECT_TRUE(measured_tiers) << measured_tiers.error().message;
    transfers_ =
        std::make_unique<Transfers>(std::make_shared<TierSet>(std::move(*measured_tiers)), *device_,
                                    CopyThreads{}, mutex_, slots_, [](const Slot&, bool) {});
  }

  // Its id, when it is away; 0: it stayed.
  Id send(const Bytes& data) {
    std::unique_lock lock(mutex_);
    const auto id = slots_.add(static_cast<int64_t>(data.size()), data.data());
    transfers_->copy_out(id);
    transfers_->wait(lock, [&] { return slots_.totals().leaving == 0; });
    if (slots_.next_copied() != id) return 0;
    slots_.let_go(id);
    return id;
  }
  // Whether it came.
  bool bring(Id id, Bytes& to) {
    std::unique_lock lock(mutex_);
    transfers_->copy_in(id, to.data(), 0);
    transfers_->wait(lock, [&] { return !slots_.coming(id); });
    return !slots_.find(id)->lost;
  }

 private:
  std::unique_ptr<ComputeDevice> device_;
  std::mutex mutex_;
  SlotTable slots_;
  std::unique_ptr<Transfers> transfers_;
};

TEST(CudaDevice, SaysWhatIsWrongWithItsName) {
  for (const auto* name : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"}) {
    const auto device = open_device(name);
    ASSERT_FALSE(device) << name;
    EXPECT_EQ(device.error().code, ErrorCode::kInvalid);
    EXPECT_NE(device.error().message.find("say cpu, cuda or cuda:N"), std::string::npos);
  }
  const auto ninth = open_device("cuda:9");
  ASSERT_FALSE(ninth);
  EXPECT_EQ(ninth.error().message, "device 'cuda:9': this process sees 2 CUDA devices");
}

TEST(CudaDevice, WithoutADriverOrWithABrokenOneSaysSo) {
  const auto none = open_cuda(0, "libnone.so.1");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("is it installed?"), std::string::npos);
  setenv("FAKE_CUDA_BROKEN", "1", 1);
  const auto broken = open_cuda(0);
  unsetenv("FAKE_CUDA_BROKEN");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("a failure of the stand-in"), std::string::npos);
}

TEST(CudaDevice, ACopyOutWaitsForWhatItsStreamWasToldBefore) {
  Gpu gpu("memory=64MiB");
  auto made = pattern(kMiB, 1);
  Bytes data(made.size()), back(made.size());
  SlowCopy kernel{made, data};
  fake_cuda_launch(0, SlowCopy::run, &kernel);
  const auto id = gpu.send(data);
  ASSERT_NE(id, 0U);
  ASSERT_TRUE(gpu.bring(id, back));
  EXPECT_EQ(back, made);
}

TEST(CudaDevice, ACopyInWaitsForWhoStillUsesTheMemory) {
  Gpu gpu("memory=64MiB");
  const auto data = pattern(kMiB, 1), before = pattern(kMiB, 2);
  auto memory = before;
  Bytes read(memory.size());
  const auto id = gpu.send(data);
  ASSERT_NE(id, 0U);
  SlowCopy reader{memory, read};
  fake_cuda_launch(0, SlowCopy::run, &reader);
  ASSERT_TRUE(gpu.bring(id, memory));
  EXPECT_EQ(memory, data);
  EXPECT_EQ(read, before);
}

TEST(CudaDevice, PinsOnceWhatIsUsedAndNothingInTheEnd) {
  const auto before = fake_cuda_count();
  {
    Gpu gpu("memory=1GiB");
    std::vector<std::pair<Id, Bytes>> away;
    for (int i = 0; i < 4; ++i) {  // of a size that ends within no piece
      auto data = pattern(40 * kMiB, i);
      const auto id = gpu.send(data);
      ASSERT_NE(id, 0U);
      away.emplace_back(id, std::move(data));
    }
    for (const auto& [id, data] : away) {
      Bytes back(data.size());
      ASSERT_TRUE(gpu.bring(id, back));
      EXPECT_EQ(back, data);
    }
    const auto now = fake_cuda_count();
    EXPECT_EQ(now.other_copies, before.other_copies);
    EXPECT_EQ(now.across_pins, before.across_pins);
    EXPECT_GE(now.pinned_bytes - before.pinned_bytes, 160 * kMiB);
    EXPECT_LE(now.pinned_bytes - before.pinned_bytes, 3 * 64 * kMiB + 4 * Staging::kBytes);
  }
  const auto after = fake_cuda_count();
  EXPECT_EQ(after.pinned_bytes, before.pinned_bytes);
  EXPECT_EQ(after.contexts, before.contexts);
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
}

TEST(CudaDevice, CopiesThroughPinnedMemoryIntoADirectory) {
  Gpu gpu("dir:/var/tmp=64MiB");
  for (const int64_t bytes : {int64_t{1}, int64_t{4097}, Staging::kBytes + 1, 9 * kMiB}) {
    const auto data = pattern(bytes, 3);
    Bytes back(data.size());
    const auto others = fake_cuda_count().other_copies;
    const auto id = gpu.send(data);
    ASSERT_NE(id, 0U);
    ASSERT_TRUE(gpu.bring(id, back));
    EXPECT_EQ(back, data) << bytes;
    EXPECT_EQ(fake_cuda_count().other_copies, others);
  }
}

TEST(CudaDevice, CopiesAlsoWhereNothingCanBePinned) {
  setenv("FAKE_CUDA_PINS_NOTHING", "1", 1);
  {
    Gpu gpu("memory=64MiB");
    const auto data = pattern(9 * kMiB, 4);
    Bytes back(data.size());
    const auto id = gpu.send(data);
    ASSERT_NE(id, 0U);
    ASSERT_TRUE(gpu.bring(id, back));
    EXPECT_EQ(back, data);
  }
  unsetenv("FAKE_CUDA_PINS_NOTHING");
}

TEST(CudaDevice, ATierThatFailsWhileItIsMeasuredIsNotPinnedAnyMore) {
  const auto before = fake_cuda_count();
  const auto device = std::move(*open_device("cuda:0"));
  fake_cuda_fail_copies(1);
  auto tiers = *tiers_of("memory=64MiB,dir:/var/tmp=64MiB");
  const auto left = measured(std::move(tiers), *device);
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_EQ(left->size(), 1U);
  EXPECT_EQ(left->front().tier->kind(), "directory");
  EXPECT_EQ(fake_cuda_count().pinned_bytes, before.pinned_bytes);
}

TEST(CudaDevice, ProcessesThatDivideTwoDevicesShareOneWhereTheyAreMore) {
  const auto device = std::move(*open_device("cuda:0"));
  EXPECT_EQ(device->sharers(1), 1);
  EXPECT_EQ(device->sharers(2), 1);
  EXPECT_EQ(device->sharers(3), 2);
  EXPECT_EQ(processor()->sharers(3), 3);
}

TEST(CudaDevice, TheHostsMemoryIsTheFirstPlaceToLeaveTo) {
  const auto device = std::move(*open_device("cuda:0"));
  const auto found = found_tiers(*device);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->front()->name(), "memory");
  EXPECT_GT(found->front()->capacity_bytes(), 64 << 20);
  EXPECT_GE(found->size(), 2U);  // a directory is the last
  const auto of_processor = found_tiers(*processor());
  ASSERT_TRUE(of_processor) << of_processor.error().message;
  for (const auto& tier : *of_processor) EXPECT_NE(tier->name(), "memory");
}

TEST(CudaDevice, ThePeakIsTheMostThatWasToldSinceItWasSetBack) {
  const auto device = std::move(*open_device("cuda:0"));
  auto& memory = device->memory();
  device->tell_memory(100, 3000);
  device->tell_memory(200, 200);
  EXPECT_EQ(memory.now(), 200);
  EXPECT_EQ(memory.peak(), 3000);
  memory.reset_peak();
  EXPECT_EQ(memory.peak(), 200);
  device->tell_memory(50, 150);
  EXPECT_EQ(memory.peak(), 200);
}

TEST(CudaDevice, WhatCannotBeCopiedOutStaysAndWhatCannotComeBackIsLost) {
  Gpu gpu("memory=64MiB,dir:/var/tmp=64MiB");
  const auto data = pattern(kMiB, 5);
  Bytes back(data.size());
  const auto id = gpu.send(data);
  ASSERT_NE(id, 0U);
  fake_cuda_fail_copies(1);
  EXPECT_FALSE(gpu.bring(id, back));
  fake_cuda_fail_copies(2);  // one of each tier
  EXPECT_EQ(gpu.send(data), 0U);
  EXPECT_NE(gpu.send(data), 0U) << "no tier has failed";
}

TEST(CudaDevice, HasItsStreamsBeforeItIsFull) {
  const auto device = std::move(*open_device("cuda:0"));
  const auto before = fake_cuda_count().streams;
  const auto copier = device->copier();
  EXPECT_EQ(fake_cuda_count().streams, before + 1);
}

}  // namespace
}  // namespace tierpilot::swap
