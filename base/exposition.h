// Figures as a page that Prometheus reads, by its conventions: base units, `_total` for counters,
// and labels whose values come from what is configured or measured, never from what clients send.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace tierpilot {

class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  Exposition();
  ~Exposition();

  // The same name again is another series of the same family; its help text is the first one's.
  // Throws std::logic_error when a name changes its kind.
  void counter(const std::string& name, const std::string& help, double value, Labels labels = {});
  void gauge(const std::string& name, const std::string& help, double value, Labels labels = {});
  // `values_ns` in seconds; the buckets end at powers of two from 2^from to 2^to nanoseconds.
  void histogram(const std::string& name, const std::string& help, const Histogram& values_ns,
                 int from, int to, Labels labels = {});

  // process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds: of this process.
  void process();

  // The text format 0.0.4.
  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace tierpilot
