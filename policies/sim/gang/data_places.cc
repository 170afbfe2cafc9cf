#include "policies/sim/gang/data_places.h"

namespace tierpilot::gang {

DataPlaces::DataPlaces(const GangScene& scene) : scene_(scene) {
  for (const auto& data : scene.data) jobs_.push_back({{data.nodes.begin(), data.nodes.end()}, {}});
}

double DataPlaces::hours(uint32_t job, uint32_t node) const {
  if (jobs_.empty()) return 0;
  const auto& places = jobs_[job];
  double bytes = places.data.contains(node) ? 0 : scene_.data[job].bytes;
  if (!places.checkpoint.empty() && !places.checkpoint.contains(node))
    bytes += scene_.data[job].checkpoint_bytes;
  return bytes / scene_.bytes_per_h[node];
}

std::vector<double> DataPlaces::fetch_h(uint32_t job) const {
  std::vector<double> of_units;
  if (jobs_.empty()) return of_units;
  double of_node = 0;
  for (uint32_t unit = 0; unit < scene_.units; ++unit) {
    if (unit % scene_.units_per_node == 0) of_node = hours(job, unit / scene_.units_per_node);
    of_units.push_back(of_node);
  }
  return of_units;
}

void DataPlaces::ran(uint32_t job, const std::set<uint32_t>& nodes) {
  if (jobs_.empty()) return;
  jobs_[job].data.insert(nodes.begin(), nodes.end());
  jobs_[job].checkpoint = nodes;
}

}  // namespace tierpilot::gang
