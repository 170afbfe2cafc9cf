// Threads that carry out copies in one direction, in the order they were asked for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "swap/device/compute_device.h"

namespace tierpilot::swap {

class Lane {
 public:
  using Work = std::function<void(uint32_t item, Copier& copier)>;
  // `name` of the threads has at most 15 characters. `device` has to outlive it.
  Lane(const std::string& name, size_t threads, ComputeDevice& device, Work work);
  // What has not begun is left undone.
  ~Lane();
  void push(uint32_t item);

 private:
  void run(const std::string& name, ComputeDevice& device);

  Work work_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<uint32_t> items_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tierpilot::swap
