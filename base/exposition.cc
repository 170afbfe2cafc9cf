#include "base/exposition.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>

namespace tierpilot {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

bool is_wrong_in_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != ':';
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

struct Exposition::Families {
  ClientMetric& add(std::string name, const std::string& help, MetricType type, Labels labels) {
    // One wrong name would cost whoever scrapes the page all of it.
    std::replace_if(name.begin(), name.end(), is_wrong_in_a_name, '_');
    const auto [place, is_new] = index.try_emplace(name, list.size());
    if (is_new) list.push_back({name, help, type, {}});
    auto& family = list[place->second];
    if (family.type != type) throw std::logic_error("metric " + name + " has two kinds");
    auto& metric = family.metric.emplace_back();
    for (auto& [key, value] : labels) metric.label.push_back({std::move(key), std::move(value)});
    return metric;
  }

  std::vector<prometheus::MetricFamily> list;
  std::map<std::string, size_t> index;
};

Exposition::Exposition() : families_(std::make_unique<Families>()) {}
Exposition::~Exposition() = default;

void Exposition::counter(const std::string& name, const std::string& help, double value,
                         Labels labels) {
  families_->add(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
}

void Exposition::gauge(const std::string& name, const std::string& help, double value,
                       Labels labels) {
  families_->add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
}

void Exposition::histogram(const std::string& name, const std::string& help,
                           const Histogram& values_ns, int from, int to, Labels labels) {
  auto& metric = families_->add(name, help, MetricType::Histogram, std::move(labels)).histogram;
  for (int power = from; power <= to; ++power) {
    const uint64_t bound_ns = uint64_t{1} << power;
    metric.bucket.push_back({values_ns.count_below(bound_ns), static_cast<double>(bound_ns) / 1e9});
  }
  metric.bucket.push_back({values_ns.count(), std::numeric_limits<double>::infinity()});
  metric.sample_count = values_ns.count();
  metric.sample_sum = static_cast<double>(values_ns.sum()) / 1e9;
}

void Exposition::process() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  counter("process_cpu_seconds_total", "CPU time, user and system.",
          seconds(used.ru_utime) + seconds(used.ru_stime));
  uint64_t pages = 0, resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident)
    gauge("process_resident_memory_bytes", "Resident memory.",
          static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  std::error_code unreadable;
  const std::filesystem::directory_iterator open("/proc/self/fd", unreadable);
  if (!unreadable)
    gauge("process_open_fds", "Open file descriptors.",
          static_cast<double>(std::distance(begin(open), end(open))));
}

std::string Exposition::text() const {
  return prometheus::TextSerializer().Serialize(families_->list);
}

}  // namespace tierpilot
