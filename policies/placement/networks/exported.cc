// What libtierpilot-networks.so exports.
#include "policies/placement/networks/library.h"
#include "policies/placement/networks/q_module.h"
#include "policies/placement/networks/token_module.h"

extern "C" [[gnu::visibility("default")]] const tierpilot::NetworkLibrary tierpilot_networks{
    TIERPILOT_VERSION, tierpilot::make_token_module, tierpilot::make_q_network};
