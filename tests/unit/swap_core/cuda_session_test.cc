// A front end of a GPU, by a stand-in for its driver: what it computes with is as it was saved, and
// what it says that it holds keeps to the budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "fake_cuda.h"
#include "swap/tierpilot_swap.h"

namespace {

constexpr int64_t kBytes = 1 << 20;

// The device's memory, as a caching allocator counts it: what is freed is free for what the stream
// is told from then on, though what it was told before may still use it.
class Allocator {
 public:
  struct Block {
    std::shared_ptr<char[]> data;
    std::shared_ptr<void> counted;
  };
  Block take() {
    held_ += kBytes;
    peak_ = std::max(peak_, held_);
    return {std::shared_ptr<char[]>(new char[kBytes]),
            std::shared_ptr<void>(this, [](Allocator* self) { self->held_ -= kBytes; })};
  }
  int64_t held() const { return held_; }
  int64_t peak() { return std::exchange(peak_, held_); }

 private:
  int64_t held_ = 0, peak_ = 0;
};

// A kernel's work and what it keeps alive until then.
struct CheckedKernel {
  std::shared_ptr<char[]> data;
  char value;
  std::atomic<int>* wrong;  // nullptr: it writes
};

void run(void* argument) {
  const std::unique_ptr<CheckedKernel> kernel(static_cast<CheckedKernel*>(argument));
  if (!kernel->wrong)
    std::memset(kernel->data.get(), kernel->value, kBytes);
  else if (kernel->data[0] != kernel->value ||
           std::memcmp(kernel->data.get(), kernel->data.get() + 1, kBytes - 1) != 0)
    ++*kernel->wrong;
}

class Trainer {
 public:
  explicit Trainer(int64_t budget) {
    const tierpilot_swap_settings settings{.size = sizeof settings,
                                           .budget_bytes = budget,
                                           .tiers = "memory=256MiB",
                                           .device = "cuda:0"};
    char error[256] = "";
    swap_ = tierpilot_swap_open(&settings, error, sizeof error);
    EXPECT_NE(swap_, nullptr) << error;
    news_ = tierpilot_swap_news(swap_);
  }
  ~Trainer() {
    tierpilot_swap_close(swap_);
    memory_.clear();
  }

  void step(size_t layers) {
    std::vector<tierpilot_swap_id> saved;
    for (size_t layer = 0; layer < layers; ++layer) saved.push_back(forward(layer));
    for (size_t layer = layers; layer-- > 0;) backward(saved[layer], layer);
  }
  nlohmann::json statistics() {
    std::string text(tierpilot_swap_describe(swap_, "statistics", nullptr, 0), ' ');
    tierpilot_swap_describe(swap_, "statistics", text.data(), text.size() + 1);
    return nlohmann::json::parse(text);
  }
  int wrong() {
    // Behind all that was told before.
    std::atomic<bool> done = false;
    fake_cuda_launch(
        0, [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &done);
    while (!done) std::this_thread::yield();
    return wrong_;
  }

 private:
  tierpilot_swap_id forward(size_t layer) {
    auto block = allocator_.take();
    fake_cuda_launch(0, run, new CheckedKernel{block.data, static_cast<char>(layer + 1), nullptr});
    const tierpilot_swap_storage storage{.place = layer + 1,
                                         .kind = 1,
                                         .flags = 0,
                                         .data = block.data.get(),
                                         .bytes = kBytes,
                                         .stream = 0};
    tell();
    const auto id = tierpilot_swap_save(swap_, &storage);
    memory_[id] = std::move(block);
    reap();
    return id;
  }

  void backward(tierpilot_swap_id id, size_t layer) {
    tell();
    auto where = tierpilot_swap_use(swap_, id);
    if (where == TIERPILOT_SWAP_AWAY) fetch(id);
    tierpilot_swap_id ids[8];
    if (news() & TIERPILOT_SWAP_NEWS_AHEAD) {
      const auto count = tierpilot_swap_ahead(swap_, ids, 8);
      for (size_t i = 0; i < count; ++i) fetch(ids[i]);
    }
    if (where != TIERPILOT_SWAP_HERE) where = tierpilot_swap_wait(swap_, id);
    ASSERT_EQ(where, TIERPILOT_SWAP_HERE);
    fake_cuda_launch(0, run,
                     new CheckedKernel{memory_[id].data, static_cast<char>(layer + 1), &wrong_});
    if (tierpilot_swap_drop(swap_, id) == 0) memory_.erase(id);
    reap();
  }

  void fetch(tierpilot_swap_id id) {
    memory_[id] = allocator_.take();
    tierpilot_swap_fetch(swap_, id, memory_[id].data.get(), 0);
  }
  void reap() {
    tierpilot_swap_id ids[8];
    while (news() & TIERPILOT_SWAP_NEWS_LEFT) {
      const auto count = tierpilot_swap_left(swap_, ids, 8);
      for (size_t i = 0; i < count; ++i) memory_.erase(ids[i]);
      if (count == 0) break;
    }
  }
  uint32_t news() const { return __atomic_load_n(news_, __ATOMIC_RELAXED); }
  void tell() {
    if (news() & TIERPILOT_SWAP_NEWS_MEMORY)
      tierpilot_swap_memory(swap_, allocator_.held(), allocator_.peak());
  }

  Allocator allocator_;
  std::atomic<int> wrong_ = 0;
  tierpilot_swap* swap_;
  const uint32_t* news_;
  std::map<tierpilot_swap_id, Allocator::Block> memory_;
};

TEST(CudaSession, ComputesWithWhatWasSavedWithinItsBudget) {
  constexpr int kSteps = 12, kLayers = 24;
  Trainer trainer(12 * kBytes);
  for (int i = 0; i < kSteps; ++i) trainer.step(kLayers);
  EXPECT_EQ(trainer.wrong(), 0);
  const auto said = trainer.statistics();
  EXPECT_EQ(said["device"], "cuda:0");
  EXPECT_GT(said["pinned_bytes"], 0);
  EXPECT_EQ(said["lost"], 0);
  EXPECT_EQ(said["saves"], kSteps * kLayers);
  // Each step moves what is over the budget: half of it, or all where it tries that.
  EXPECT_GE(said["copies_out"], (kSteps - 1) * (kLayers - 12));
  EXPECT_LE(said["over_budget_steps"], 1);
  EXPECT_LE(said["last_peak_bytes"], 12 * kBytes);
}

TEST(CudaSession, NothingLeavesWhereAllHasRoom) {
  Trainer trainer(64 * kBytes);
  for (int i = 0; i < 12; ++i) trainer.step(24);
  EXPECT_EQ(trainer.wrong(), 0);
  const auto said = trainer.statistics();
  EXPECT_LE(said["copies_out"], 2 * 24) << "while it learns, all may";
  EXPECT_EQ(said["over_budget_steps"], 0);
  EXPECT_GE(said["last_peak_bytes"], 24 * kBytes);
}

TEST(CudaSession, AnEarlierFrontEndsSettingsAreOfAProcessor) {
  const tierpilot_swap_settings settings{.size = offsetof(tierpilot_swap_settings, device),
                                         .budget_bytes = kBytes,
                                         .tiers = "memory=1MiB"};
  char error[256] = "";
  auto* swap = tierpilot_swap_open(&settings, error, sizeof error);
  ASSERT_NE(swap, nullptr) << error;
  EXPECT_EQ(*tierpilot_swap_news(swap) & TIERPILOT_SWAP_NEWS_MEMORY, 0U);
  tierpilot_swap_close(swap);
}

}  // namespace
