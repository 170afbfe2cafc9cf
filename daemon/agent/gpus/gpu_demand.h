// How much of a GPU's time one that shares it wants: the part of the time in which it may run that
// the driver's samples show it there. Who is there nearly always saturates the GPU. Others beside
// it make it wait: what it would use alone is a guess then. Pure.
#pragma once

#include <cstdint>

namespace tierpilot::agent {

class GpuDemand {
 public:
  struct Use {
    int64_t ran_ns = 0;   // that it might run
    int64_t used_ns = 0;  // of the GPU's time, by samples
  };
  // Its own since it was last told, and that of all others while it ran. Samples may come late, and
  // in lumps.
  void add(const Use& own, const Use& others);
  // Taken for granted until enough was measured.
  bool saturates() const { return saturates_; }
  // Of wall time, in which it uses that much of the GPU's: thousandths of both. All of it, where it
  // uses no more anyway.
  uint32_t turns_milli(uint32_t milli) const;

 private:
  static constexpr double kLately_ns = 2e9, kLonger_ns = 8e9;

  // Of the time in which it ran, the last most.
  struct Window {
    double length_ns = 0;
    double ran_ns = 0, used_ns = 0, others_ran_ns = 0, others_used_ns = 0;

    void add(const Use& own, const Use& others);
    double demand() const;  // beside the others
    // Alone: a guess, of at most so many that made it wait at a time.
    double demand_alone(double most_others) const;
  };

  void judge(int64_t ran_ns);
  void change();

  Window lately_{.length_ns = kLately_ns};
  Window longer_{.length_ns = kLonger_ns};
  Use own_, others_;  // since the last sample
  bool begun_ = false;
  int64_t measured_ns_ = 0;  // since it began or ceased to saturate
  bool saturates_ = true;
  bool guessed_ = false;
  int64_t pause_ns_ = 0;  // before the next guess
};

}  // namespace tierpilot::agent
