// The coordinator's queue: tasks by their places (policies/service_order.h), equals by their
// numbers, which is the order of arrival.
#pragma once

#include <boost/intrusive/set.hpp>
#include <cstdint>

#include "base/large_pages.h"
#include "policies/service_order.h"

namespace tierpilot::sim {

class TaskQueue {
 public:
  static constexpr uint32_t kEnd = UINT32_MAX;

  explicit TaskQueue(size_t tasks) : links_(tasks) {}
  uint32_t first() const { return number(queue_.begin()); }
  uint32_t after(uint32_t task) const { return number(++queue_.iterator_to(links_[task])); }
  size_t size() const { return queue_.size(); }
  // Where it stands, or stood.
  QueuePlace place(uint32_t task) const { return {links_[task].place_s, task}; }

  void insert(uint32_t task, double place_s) {
    links_[task].place_s = place_s;
    queue_.insert(queue_.end(), links_[task]);
  }
  void erase(uint32_t task) { queue_.erase(queue_.iterator_to(links_[task])); }

 private:
  struct Link : boost::intrusive::set_base_hook<
                    boost::intrusive::optimize_size<true>,
                    boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    double place_s = 0;
    // Links are in the order of the tasks' numbers.
    friend bool operator<(const Link& a, const Link& b) {
      return a.place_s != b.place_s ? a.place_s < b.place_s : &a < &b;
    }
  };
  using Queue = boost::intrusive::set<Link>;

  uint32_t number(Queue::const_iterator at) const {
    return at == queue_.end() ? kEnd : static_cast<uint32_t>(&*at - links_.data());
  }

  LargeVector<Link> links_;
  Queue queue_;
};

}  // namespace tierpilot::sim
