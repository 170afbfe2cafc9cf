// A kernel with as many nodes as a test wants, and time that passes only when somebody waits.
#pragma once

#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include "daemon/memory/mover/pace.h"
#include "daemon/memory/mover/page_kernel.h"

namespace tierpilot {

class VirtualPacer final : public Pacer {
 public:
  int64_t boot_ns() const override { return now_ns; }
  int64_t wall_ms() const override { return now_ns / 1'000'000; }
  bool sleep_until(int64_t boot_ns, std::stop_token stop) override {
    if (stop.stop_requested()) return false;
    now_ns = std::max(now_ns, boot_ns);
    return true;
  }
  int64_t thread_cpu_ns() const override { return cpu_ns; }

  int64_t now_ns = 1;
  int64_t cpu_ns = 0;
};

class FakePages final : public PageKernel {
 public:
  struct Page {
    int node = 0;
    uint64_t bytes = 4096;
    int fails_with = 0;  // errno of the next `failures` tries
    int failures = 0;
  };

  void map(uint64_t start, uint64_t end, int node, uint64_t page_bytes = 4096) {
    for (uint64_t at = start; at < end; at += page_bytes)
      pages[at] = {.node = node, .bytes = page_bytes};
  }

  int move_pages(pid_t pid, std::span<void* const> addresses, int node,
                 std::span<int> status) override {
    if (alive != 0 && pid != alive) return -ended_with;
    ++move_calls;
    largest_call = std::max(largest_call, addresses.size());
    std::set<Page*> isolated;
    for (size_t i = 0; i < addresses.size(); ++i) {
      Page* page = find(addresses[i]);
      if (!page) {
        status[i] = -ENOENT;
      } else if (!isolated.insert(page).second) {
        status[i] = -EBUSY;  // another part of the huge page that is on its way already
      } else if (page->failures != 0) {
        page->failures -= page->failures > 0;
        status[i] = -page->fails_with;
      } else if (room.count(node) && room[node] < page->bytes) {
        return -ENOMEM;  // as the kernel, which tells nothing of the rest
      } else {
        if (room.count(node)) room[node] -= page->bytes;
        if (room.count(page->node)) room[page->node] += page->bytes;
        moved_bytes += page->node == node ? 0 : page->bytes;
        page->node = node;
        status[i] = node;
      }
    }
    return 0;
  }

  int locate_pages(pid_t pid, std::span<void* const> addresses, std::span<int> status) override {
    if (alive != 0 && pid != alive) return -ended_with;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Page* page = find(addresses[i]);
      status[i] = page ? page->node : -ENOENT;
    }
    return 0;
  }

  Result<std::vector<uint64_t>> huge_pages(pid_t, uint64_t start, uint64_t end) override {
    if (!tells_huge_pages) return fail(ErrorCode::kUnavailable, "unavailable: old kernel");
    std::vector<uint64_t> starts;
    for (const auto& [at, page] : pages)
      if (page.bytes > 4096 && at < end && at + page.bytes > start) starts.push_back(at);
    return starts;
  }

  uint64_t bytes_on(int node) const {
    uint64_t bytes = 0;
    for (const auto& [at, page] : pages) bytes += page.node == node ? page.bytes : 0;
    return bytes;
  }

  pid_t alive = 1;         // 0: all are
  int ended_with = ESRCH;  // what calls for other processes fail with
  bool tells_huge_pages = true;
  std::map<uint64_t, Page> pages;  // by start
  std::map<int, uint64_t> room;    // by node; none: without end
  uint64_t moved_bytes = 0;
  size_t largest_call = 0;
  int move_calls = 0;

 private:
  Page* find(void* address) {
    const auto at = reinterpret_cast<uint64_t>(address);
    auto next = pages.upper_bound(at);
    if (next == pages.begin()) return nullptr;
    --next;
    return at < next->first + next->second.bytes ? &next->second : nullptr;
  }
};

}  // namespace tierpilot
