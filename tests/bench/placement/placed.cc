#include "tests/bench/placement/placed.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "daemon/memory/heat/access.h"

namespace tierpilot::bench {
namespace {

constexpr size_t kStride = 8;

}  // namespace

PlacedPages::PlacedPages(PageKernel& kernel, const ProgramOptions& program, pid_t pid,
                         uint64_t data_start, int fast_node)
    : kernel_(kernel),
      program_(program),
      pid_(pid),
      data_start_(data_start),
      fast_node_(fast_node),
      pages_(program.bytes / kBasePageBytes) {
  set_hot_quarter(3);
}

void* PlacedPages::address(size_t page) const {
  return reinterpret_cast<void*>(data_start_ + page * kBasePageBytes);
}

void PlacedPages::set_hot_quarter(uint32_t quarter) {
  weights_ = page_weights(program_, quarter);
  by_weight_.resize(pages_);
  std::iota(by_weight_.begin(), by_weight_.end(), 0);
  hot_.assign(pages_, false);
  if (weights_.empty()) return;
  std::stable_sort(by_weight_.begin(), by_weight_.end(),
                   [this](size_t a, size_t b) { return weights_[a] > weights_[b]; });
  for (size_t i = 0; i < pages_ / 4; ++i) hot_[by_weight_[i]] = true;
}

Result<Placed> PlacedPages::look() {
  std::vector<size_t> sample;
  for (size_t p = next_++ % kStride; p < pages_; p += kStride) sample.push_back(p);
  std::vector<void*> addresses;
  for (const size_t p : sample) addresses.push_back(address(p));
  std::vector<int> status(sample.size(), -1);
  if (const int err = kernel_.locate_pages(pid_, addresses, status); err < 0)
    return fail_errno(-err, "where the program's pages are");
  double all = 0, fast = 0, weight = 0, fast_weight = 0, hot = 0, fast_hot = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double w = weights_.empty() ? 1 : weights_[sample[i]];
    const bool is_fast = status[i] == fast_node_, is_hot = hot_[sample[i]];
    all += 1, weight += w, hot += is_hot;
    fast += is_fast, fast_weight += is_fast * w, fast_hot += is_fast && is_hot;
  }
  Placed placed{.fast_share = fast / all, .fast_access_share = fast_weight / weight};
  if (!weights_.empty()) placed.recall = fast_hot / std::max(hot, 1.0);
  if (!weights_.empty() && fast > 0) placed.precision = fast_hot / fast;
  return placed;
}

Status PlacedPages::move(const std::vector<size_t>& pages, int node) {
  constexpr size_t kPagesPerCall = 512;
  for (size_t first = 0; first < pages.size(); first += kPagesPerCall) {
    const size_t count = std::min(kPagesPerCall, pages.size() - first);
    std::vector<void*> addresses;
    for (size_t i = 0; i < count; ++i) addresses.push_back(address(pages[first + i]));
    std::vector<int> status(count, -1);
    const int err = kernel_.move_pages(pid_, addresses, node, status);
    // What does not fit stays where it is: look() tells.
    if (err < 0 && err != -ENOMEM) return fail_errno(-err, "moving the program's pages");
  }
  return {};
}

Status PlacedPages::arrange(int slow_node) {
  std::vector<void*> addresses;
  for (size_t p = 0; p < pages_; ++p) addresses.push_back(address(p));
  std::vector<int> status(pages_, -1);
  if (const int err = kernel_.locate_pages(pid_, addresses, status); err < 0)
    return fail_errno(-err, "where the program's pages are");
  const auto room = static_cast<size_t>(std::count(status.begin(), status.end(), fast_node_));
  std::vector<size_t> up, down;
  for (size_t i = 0; i < pages_; ++i) {
    const size_t page = by_weight_[i];
    const bool is_fast = status[page] == fast_node_;
    if (i < room && !is_fast) up.push_back(page);
    if (i >= room && is_fast) down.push_back(page);
  }
  if (auto moved = move(down, slow_node); !moved) return moved;
  return move(up, fast_node_);
}

}  // namespace tierpilot::bench
