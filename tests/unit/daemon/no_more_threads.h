// As long as it lives this process makes no more threads, as where a task has used up how many the
// machine or the unit has.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

namespace tierpilot {

class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t impossible;
    ::pthread_attr_init(&impossible);
    constexpr size_t kMoreThanThereIs = size_t{1} << 50;
    ::pthread_attr_setstacksize(&impossible, kMoreThanThereIs);
    EXPECT_EQ(::pthread_setattr_default_np(&impossible), 0);
    ::pthread_attr_destroy(&impossible);
  }
  ~NoMoreThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace tierpilot
