// Threads that carry out copies in one direction, in the order they were asked for.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "swap/device/compute_device.h"

namespace tierpilot::swap {

class Lane {
 public:
  using Work = std::function<void(uint32_t item, Copier& copier)>;
  // `name` of the threads has at most 15 characters. `device` has to outlive it. Throws what there
  // is no thread or memory for.
  Lane(const std::string& name, size_t threads, ComputeDevice& device, Work work);
  // What has not begun is left undone.
  ~Lane();
  void push(uint32_t item);

 private:
  void run(const std::string& name, ComputeDevice& device);
  std::unique_ptr<Copier> begin(ComputeDevice& device);
  void end();

  Work work_;
  std::mutex mutex_;
  std::condition_variable wake_, begun_;
  std::deque<uint32_t> items_;
  bool ending_ = false;
  size_t ready_ = 0;  // threads
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace tierpilot::swap
