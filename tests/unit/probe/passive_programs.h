// The programs themselves, run by the kernel on made-up tracepoint arguments: what moves no page of
// the machine.
#pragma once

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "daemon/probe/passive/libbpf_log.h"
#include "daemon/probe/passive/maps.h"
#include "daemon/probe/passive/programs.h"

namespace tierpilot {

inline constexpr uint64_t kDemotion = 8;  // MR_DEMOTION

// Loads a skeleton as raw_tp, the type whose programs can be run by hand.
template <class Skeleton>
class ProgramsRunByHand : public testing::Test {
 protected:
  static int run(const ::bpf_program* program, std::array<uint64_t, 8> args) {
    LIBBPF_OPTS(bpf_test_run_opts, opts);
    opts.ctx_in = args.data();
    opts.ctx_size_in = sizeof args;
    return bpf_prog_test_run_opts(bpf_program__fd(program), &opts);
  }

  void SetUp() override {
    capture_libbpf_log();
    skeleton_.reset(Skeleton::open(nullptr));
    ASSERT_TRUE(skeleton_);
    set_knobs();
    clear_libbpf_reason();
    const int err = Skeleton::load(skeleton_.get());
    // A complaint of the verifier is a fault of the program, not of the machine.
    ASSERT_EQ(libbpf_reason().find("verifier"), std::string::npos) << libbpf_reason();
    if (err != 0) GTEST_SKIP() << "BPF programs cannot be loaded here: " << std::strerror(-err);
  }
  void set_knobs();

  std::vector<PassiveEvent> events() {
    std::vector<PassiveEvent> found;
    const auto collect = [](void* list, void* data, size_t size) {
      if (auto event = decode_event(data, size, {{kDemotion, "MR_DEMOTION"}}))
        static_cast<std::vector<PassiveEvent>*>(list)->push_back(*event);
      return 0;
    };
    auto* ring = ring_buffer__new(bpf_map__fd(skeleton_->maps.tp_events), collect, &found, nullptr);
    ring_buffer__consume(ring);
    ring_buffer__free(ring);
    return found;
  }

  // Counters of this process's group, which is tracked from now on.
  template <class Stats>
  Stats group_after(const ::bpf_map* groups, const std::function<void()>& work) {
    const int32_t pgid = ::getpgrp();
    std::vector<Stats> stats(1);
    EXPECT_TRUE(put_element(groups, pgid, stats));
    work();
    EXPECT_TRUE(get_element(groups, pgid, stats));
    return stats[0];
  }

  SkeletonPtr<Skeleton> skeleton_;
};

}  // namespace tierpilot
