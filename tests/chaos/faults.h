// What happens to real processes, at random by a seed.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/chaos/bad_certificates.h"
#include "tests/chaos/small_disks.h"
#include "tests/chaos/wall_clocks.h"
#include "tests/chaos/ways.h"
#include "tests/system/cluster.h"

namespace tierpilot::chaos {

// What faults act on; null where this machine does not allow it.
struct Surroundings {
  test::Cluster& cluster;
  Ways& ways;
  SmallDisks* disks = nullptr;
  WallClocks* clocks = nullptr;
  int nodes = 3;
  bool tls = false;
};

class Faults {
 public:
  Faults(Surroundings surroundings, uint64_t seed);

  // One fault, now, and its end if it has one; returns some time after. While a lasting one lasts,
  // a process may be killed besides.
  void strike();
  // All processes run, all ways are open, all clocks are right.
  void heal();
  const std::map<std::string, int>& counts() const { return counts_; }
  // What did not come about as it must.
  const std::vector<std::string>& wrong() const { return certificates_.wrong(); }

 private:
  // A node's daemon, or the coordinator (-1).
  void kill(int process);
  void stop(int process);
  void pause(int process);
  void partition();
  void slow_link();
  void fill_work_folder();
  void fill_slow_tier();
  void set_clock();
  void refuse_starts();
  void kill_in_commit();
  void show_bad_certificate();
  void revoke_certificate();

  // Lets a fault last, in which another may strike.
  void last(int from_ms, int to_ms);
  void revive();
  test::Process& process_of(int process);
  void restart(int process, int after_ms);
  int any_node() { return draw(0, with_.nodes - 1); }
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void sleep(int from_ms, int to_ms);

  const Surroundings with_;
  BadCertificates certificates_;
  std::vector<std::pair<const char*, std::function<void()>>> kinds_;
  std::mt19937_64 random_;
  bool lasting_ = false;
  std::map<std::string, int> counts_;
};

}  // namespace tierpilot::chaos
