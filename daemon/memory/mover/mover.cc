#include "daemon/memory/mover/mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "daemon/memory/heat/access.h"

namespace tierpilot {
namespace {

Status call_failed(int err, pid_t pid) {
  if (err == ESRCH) return fail(ErrorCode::kNotFound, fmt::format("process {} has ended", pid));
  if (err == EPERM)
    return fail(ErrorCode::kDenied,
                fmt::format("process {}: its pages may not be moved: CAP_SYS_NICE and "
                            "CAP_SYS_PTRACE are needed",
                            pid));
  return fail_errno(err, fmt::format("process {}: move_pages", pid));
}

bool is_on(const std::vector<int>& nodes, int status) {
  return std::find(nodes.begin(), nodes.end(), status) != nodes.end();
}

uint64_t sum_of(const std::vector<uint64_t>& bytes) {
  uint64_t sum = 0;
  for (const uint64_t b : bytes) sum += b;
  return sum;
}

}  // namespace

void MoveResult::add(const MoveResult& other) {
  bytes_moved += other.bytes_moved;
  bytes_there += other.bytes_there;
  bytes_absent += other.bytes_absent;
  for (const auto& [err, pages] : other.pages_failed) pages_failed[err] += pages;
  stopped |= other.stopped;
}

void Mover::Batch::add(uint64_t address, uint64_t page, size_t owner) {
  pages.push_back(reinterpret_cast<void*>(address));
  page_bytes.push_back(page);
  owners.push_back(owner);
  bytes += page;
}

void Mover::Batch::keep(size_t from, size_t to) {
  pages[to] = pages[from];
  page_bytes[to] = page_bytes[from];
  owners[to] = owners[from];
}

void Mover::Batch::resize(size_t count) {
  pages.resize(count);
  page_bytes.resize(count);
  owners.resize(count);
}

void Mover::add_pages(const MoveRequest& request, uint64_t start, uint64_t end,
                      const Result<std::vector<uint64_t>>& huge, size_t owner, Batch& batch) const {
  // Other sizes are hugetlbfs's alone, whose pages all are of one.
  const bool may_be_huge =
      request.page_bytes == kBasePageBytes || request.page_bytes == kHugePageBytes;
  for (uint64_t at = start; at < end;) {
    const uint64_t head = at & ~(kHugePageBytes - 1);
    if (may_be_huge && huge && std::binary_search(huge->begin(), huge->end(), head)) {
      // The request before may have had the first part of it.
      const bool known =
          !batch.pages.empty() && batch.pages.back() == reinterpret_cast<void*>(head);
      if (!known) batch.add(head, kHugePageBytes, owner);
      at = head + kHugePageBytes;
      continue;
    }
    // A mapping with huge pages has base pages between them.
    const bool base = request.page_bytes == kHugePageBytes;
    const uint64_t bytes = base ? kBasePageBytes : request.page_bytes;
    batch.add(at, bytes, owner);
    at += bytes;
  }
}

Result<MoveResult> Mover::move(const MoveRequest& request, std::stop_token stop) {
  auto results = move_all({&request, 1}, std::move(stop));
  if (!results) return tl::unexpected(results.error());
  return std::move(results->front());
}

Result<std::vector<MoveResult>> Mover::move_all(std::span<const MoveRequest> requests,
                                                std::stop_token stop) {
  std::vector<MoveResult> results(requests.size());
  Batch batch;
  const auto flush = [&]() -> Status {
    if (batch.pages.empty()) return {};
    if (!stop.stop_requested())
      return move_batch(requests.front(), std::exchange(batch, {}), stop, results);
    for (const size_t owner : batch.owners) results[owner].stopped = true;
    batch = {};
    return {};
  };
  for (size_t r = 0; r < requests.size(); ++r) {
    const auto& request = requests[r];
    if (request.nodes.empty() || request.page_bytes == 0 || request.start >= request.end)
      return fail(ErrorCode::kInvalid, "move: no node, no page size or an empty range");
    if (request.pid != requests.front().pid || request.nodes != requests.front().nodes)
      return fail(ErrorCode::kInvalid, "move: requests of several processes or for other nodes");
    // Where the kernel does not tell, every page of a huge one is asked for: the first takes all
    // along, the others are busy, and the second look finds them moved.
    const auto huge = kernel_.huge_pages(request.pid, request.start, request.end);
    const uint64_t step = std::max<uint64_t>(options_.batch_bytes, request.page_bytes);
    for (uint64_t at = request.start; at < request.end;) {
      // Batches end at multiples, so that none cuts a huge page.
      const uint64_t end = std::min(request.end, (at / step + 1) * step);
      if (batch.bytes + (end - at) > step)
        if (auto status = flush(); !status) return tl::unexpected(status.error());
      add_pages(request, at, end, huge, r, batch);
      at = end;
    }
  }
  if (auto status = flush(); !status) return tl::unexpected(status.error());
  return results;
}

Status Mover::sort_out(const MoveRequest& request, Batch& batch, Results results) {
  std::vector<int> where(batch.pages.size(), -ENOENT);
  if (const int err = kernel_.locate_pages(request.pid, batch.pages, where); err < 0)
    return call_failed(-err, request.pid);
  size_t kept = 0;
  for (size_t i = 0; i < where.size(); ++i) {
    auto& result = results[batch.owners[i]];
    if (is_on(request.nodes, where[i]))
      result.bytes_there += batch.page_bytes[i];
    else if (where[i] < 0)
      result.bytes_absent += batch.page_bytes[i];
    else
      batch.keep(i, kept++);
  }
  batch.resize(kept);
  return {};
}

Status Mover::attempt(const MoveRequest& request, int node, Batch& batch, std::vector<int>& why,
                      Results results) {
  // The kernel stops at the first page it cannot move for want of memory, and tells nothing of
  // those behind it.
  std::vector<int> status(batch.pages.size(), -EAGAIN);
  const int left = kernel_.move_pages(request.pid, batch.pages, node, status);
  if (left == -ESRCH || left == -EPERM) return call_failed(-left, request.pid);
  std::vector<int> now(batch.pages.size(), -EAGAIN);
  if (const int err = kernel_.locate_pages(request.pid, batch.pages, now); err < 0)
    return call_failed(-err, request.pid);
  why.clear();
  size_t kept = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    auto& result = results[batch.owners[i]];
    if (is_on(request.nodes, now[i])) {
      result.bytes_moved += batch.page_bytes[i];
    } else if (now[i] < 0) {
      result.bytes_absent += batch.page_bytes[i];
    } else {
      why.push_back(left < 0 ? -left : status[i] < 0 ? -status[i] : EBUSY);
      batch.keep(i, kept++);
    }
  }
  batch.resize(kept);
  return {};
}

Status Mover::move_batch(const MoveRequest& request, Batch batch, std::stop_token stop,
                         Results results) {
  if (auto status = sort_out(request, batch, results); !status) return status;
  if (batch.pages.empty()) return {};
  std::vector<int> why(batch.pages.size(), ENOMEM);
  for (const int node : request.nodes) {
    if (is_paused(node)) continue;
    const int64_t ready_ns = limiter_.take(sum_of(batch.page_bytes), pacer_.boot_ns());
    const auto stopped = [&] {
      for (const size_t owner : batch.owners) results[owner].stopped = true;
    };
    if (!pacer_.sleep_until(ready_ns, stop)) return stopped(), Status();
    for (int round = 0; round < options_.attempts && !batch.pages.empty(); ++round) {
      const int64_t backoff_ns = round == 0 ? 0 : options_.retry_ns << (round - 1);
      if (!pacer_.sleep_until(pacer_.boot_ns() + backoff_ns, stop)) return stopped(), Status();
      if (auto status = attempt(request, node, batch, why, results); !status) return status;
      const bool full = std::count(why.begin(), why.end(), ENOMEM) > 0;
      if (full && round + 1 == options_.attempts) pause(node);
      // The kernel's word for a page that others share: it stays so.
      const auto hopeless = [](int err) { return err == EACCES || err == EFAULT || err == EINVAL; };
      if (std::all_of(why.begin(), why.end(), hopeless)) break;
    }
    if (batch.pages.empty()) {
      paused_.erase(node);
      return {};
    }
  }
  for (size_t i = 0; i < why.size(); ++i) ++results[batch.owners[i]].pages_failed[why[i]];
  return {};
}

bool Mover::is_paused(int node) const {
  const auto pause = paused_.find(node);
  return pause != paused_.end() && pacer_.boot_ns() < pause->second.until_ns;
}

void Mover::pause(int node) {
  Pause& pause = paused_[node];
  const int64_t longest_ns = options_.full_node_pause_ns * 64;
  pause.length_ns = pause.length_ns == 0 ? options_.full_node_pause_ns
                                         : std::min(pause.length_ns * 2, longest_ns);
  pause.until_ns = pacer_.boot_ns() + pause.length_ns;
}

}  // namespace tierpilot
