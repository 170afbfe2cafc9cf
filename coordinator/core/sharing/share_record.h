// What a job with a share of a unit was predicted to do and has shown since: how much of the unit
// it uses, and how long it still runs. Pure; in memory only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/job_point.h"
#include "policies/sharing/live/live_unit.h"

namespace tierpilot {

// Of work: who tells no iterations by then never will.
inline constexpr double kLongestStart_s = 60;

struct ShareForecast {
  sharing::Predicted predicted;
  std::string by;              // what it was predicted by, to be shown
  bool of_training = false;    // it tells its iterations, after predicted.start_s
  double traffic_bytes_s = 0;  // of its tensors, per second of compute; 0: not known
  // As it is thought to be alone, while predicted.milli is what it is to have; 0: not known, as
  // where its user alone tells of it.
  double use_milli = 0;
};

class ShareRecord {
 public:
  explicit ShareRecord(ShareForecast forecast)
      : forecast_(std::move(forecast)),
        need_milli_(forecast_.predicted.milli),
        starts_(forecast_.of_training) {}

  // Times are seconds of one clock.
  void started(double now_s, uint32_t milli);
  // It ran before anybody watched: it tells nothing of a whole run.
  void taken_up() {
    saw_all_ = false;
    takes_checkpoints_.reset();
  }
  // For the unit that it is on, which was not known before.
  void foretold(ShareForecast forecast);
  void given(double now_s, uint32_t milli);
  // What its neighbours are thought to leave of its speed from now on.
  void beside(double now_s, double kept);
  // `cores`: of the unit.
  void add(double now_s, const JobPoint& report, double cores);
  void saved(double now_s);  // a checkpoint can be had

  const ShareForecast& forecast() const { return forecast_; }
  bool has_started() const { return started_s_.has_value(); }
  double elapsed_s(double now_s) const { return started_s_ ? now_s - *started_s_ : 0; }
  // What it would use if nothing held it back, by what was measured.
  uint32_t need_milli() const { return need_milli_; }
  // The same without a margin: about as it was measured, else as foretold; 0: not known.
  double use_milli() const { return about_milli_ > 0 ? about_milli_ : forecast_.use_milli; }
  std::optional<double> used_milli() const { return used_milli_; }  // lately
  // Over the whole run; 0: not known.
  double mean_milli() const { return counted_s_ > 0 ? counted_milli_s_ / counted_s_ : 0; }
  // Of its run if nothing held it back; 0: not known.
  double left_s(double now_s) const;
  double left_upper_s(double now_s) const;
  double start_left_s(double now_s) const;  // of both
  // Of its start, if nothing had held it back; nothing before its end.
  std::optional<double> start_s() const { return start_s_; }
  // It would if it was asked to; also where its node has not told yet.
  bool may_take_checkpoints() const { return takes_checkpoints_.value_or(true); }
  double unsaved_s(double now_s) const { return now_s - saved_s_; }
  double kept() const { return kept_; }
  // Of the run so far, as if nothing had held it back, neighbours neither.
  double worked_s(double now_s) const;
  bool counts_iterations() const { return iteration_s_.has_value(); }
  // Of an iteration with what it has now; nothing: it counts none.
  std::optional<double> step_s() const;
  // From its start on, which was no checkpoint.
  bool saw_all() const { return saw_all_; }

 private:
  double speed() const {
    return sharing::speed_with(milli_, starts_ ? sharing::kWholeUnit : need_milli_) * kept_;
  }
  // What was worked until now, before speed() changes.
  void work_off(double now_s);
  void measured_first();
  void end_start(double now_s);
  void measure_use(double now_s, const JobPoint& report, double cores);
  void measure_pace(double now_s, const JobPoint& report);

  ShareForecast forecast_;
  uint32_t need_milli_;
  uint32_t milli_ = sharing::kWholeUnit;
  bool starts_;  // it has not come to its first iteration
  bool saw_all_ = true;
  std::optional<double> start_s_;
  std::optional<double> started_s_;
  std::optional<bool> takes_checkpoints_ = false;
  double saved_s_ = 0;
  double kept_ = 1;
  double given_s_ = 0;   // the last change of the share or of what neighbours leave
  double worked_s_ = 0;  // until then, of its start while that lasts
  // While nobody has seen what it uses, and so whether its share held it back.
  struct Unmeasured {
    double lasted_s = 0;
    uint32_t milli = 0;
    double kept = 1;
  };
  std::vector<Unmeasured> unmeasured_;
  std::optional<double> used_milli_;
  double use_from_s_ = 0;  // the report that use is measured from
  uint64_t use_from_ns_ = 0, waited_from_ns_ = 0;
  std::optional<double> wanted_milli_;
  double counted_s_ = 0, counted_milli_s_ = 0;
  std::optional<double> iteration_s_;  // of one, if nothing held it back
  // The newest that is wanted, held until it is a tenth off: by it neighbours are thought to take
  // more or less, and a pace that is measured begins anew when that changes.
  double about_milli_ = 0;
  double pace_from_s_ = 0;
  uint64_t pace_from_ = 0;
  uint64_t iteration_ = 0, iterations_ = 0;
  double iteration_at_s_ = 0;
};

}  // namespace tierpilot
