// libbpf's messages go to the debug log; the most telling one is kept for the reason of a failure.
#pragma once

#include <string>

namespace tierpilot {

// Installs the hook, once per process. The kept reason is per thread.
void capture_libbpf_log();
void clear_libbpf_reason();
// The verifier's last word, else libbpf's first complaint since clear_libbpf_reason(); "" for none.
std::string libbpf_reason();

// Picks the verifier's complaint out of a libbpf message, "" when it has no verifier log.
std::string verifier_complaint(const std::string& message);

}  // namespace tierpilot
