#include "policies/gang/learned/hosted_placers.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "policies/gang/learned/ac_net.h"

namespace tierpilot::gang {
namespace {

Result<std::unique_ptr<Placer>> load_ac(const PlacerOrigin& origin) {
  std::ifstream file(origin.weights);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    return fail(ErrorCode::kNotFound, fmt::format("weights '{}' cannot be read", origin.weights));
  auto net = read_ac_weights(text.str(), origin.weights);
  if (!net) return tl::unexpected(net.error());
  return make_ac_placer(std::make_shared<const AcNet>(std::move(*net)));
}

}  // namespace

const PlacerModules& hosted_placers() {
  static const auto kHosted = [] {
    std::vector<PlacerModule> modules{
        {{{kDefaultGangPolicy, "an actor-critic that learned by simulation"}, load_ac}}};
    modules.front().learned = true;
    for (const PlacerModule& module : placers())
      if (!module.knows_future && !module.needs_past) modules.push_back(module);
    return PlacerModules("gang policy", std::move(modules));
  }();
  return kHosted;
}

}  // namespace tierpilot::gang
