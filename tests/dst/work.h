// A job's work, which is done as fast as its share of a unit lets it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot::dst {

class Work {
 public:
  // `need_milli`: of its unit, with which it is as fast as it can be; 0: it has units of its own.
  // Times are of one clock, amounts of work the time that they take then.
  Work(int64_t now_ns, int64_t done_ns, int64_t whole_ns, uint32_t need_milli)
      : since_ns_(now_ns), done_ns_(done_ns), whole_ns_(whole_ns), need_milli_(need_milli) {}

  // It has so much from now on.
  void give(int64_t now_ns, uint32_t milli) {
    done_ns_ = done_ns(now_ns);
    used_ns_ = used_ns(now_ns);
    waited_ns_ = waited_ns(now_ns);
    since_ns_ = now_ns;
    milli_ = milli;
  }
  uint32_t milli() const { return milli_; }  // 0: nobody holds it to a share yet
  int64_t done_ns(int64_t now_ns) const {
    return std::min(whole_ns_, done_ns_ + part(now_ns, speed()));
  }
  // Until it is done, with what it has.
  int64_t left_ns(int64_t now_ns) const {
    return static_cast<int64_t>(static_cast<double>(whole_ns_ - done_ns(now_ns)) / speed());
  }
  // Of the unit, as time alone on it; and for how long it was held back.
  int64_t used_ns(int64_t now_ns) const {
    return used_ns_ + part(now_ns, speed() * need_milli_ / 1000);
  }
  int64_t waited_ns(int64_t now_ns) const { return waited_ns_ + part(now_ns, 1 - speed()); }

 private:
  double speed() const {
    if (need_milli_ == 0 || milli_ == 0) return 1;
    return std::min(1.0, static_cast<double>(milli_) / need_milli_);
  }
  int64_t part(int64_t now_ns, double of) const {
    return static_cast<int64_t>(static_cast<double>(now_ns - since_ns_) * of);
  }

  int64_t since_ns_;
  int64_t done_ns_;
  int64_t whole_ns_;
  uint32_t need_milli_;
  uint32_t milli_ = 0;
  int64_t used_ns_ = 0;
  int64_t waited_ns_ = 0;
};

}  // namespace tierpilot::dst
