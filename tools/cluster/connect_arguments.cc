#include "tools/cluster/connect_arguments.h"

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "tools/cluster/duration.h"

namespace tierpilot {
namespace {

template <class T, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, T& value, const std::string& help,
                        Parse parse) {
  return app.add_option_function<std::string>(
      name,
      [&value, name, parse](const std::string& text) {
        const auto parsed = parse(text);
        if (!parsed) throw CLI::ValidationError(name, parsed.error().message);
        value = *parsed;
      },
      help);
}

}  // namespace

CLI::Option* add_duration(CLI::App& app, const std::string& name, int64_t& ms,
                          const std::string& help) {
  return add_parsed(app, name, ms, help, parse_duration_ms)->type_name("DURATION");
}

CLI::Option* add_size(CLI::App& app, const std::string& name, uint64_t& bytes,
                      const std::string& help) {
  return add_parsed(app, name, bytes, help, parse_bytes)->type_name("SIZE");
}

void add_connect_options(CLI::App& app, ConnectOptions& options) {
  app.add_option("--connect", options.address, "coordinator: unix:/path or tls:host:port")
      ->envname("TIERPILOT_COORDINATOR")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--tls-ca", options.tls_ca, "certificate authority, for tls: addresses")
      ->type_name("FILE");
  app.add_option("--tls-cert", options.tls_certificate, "own certificate")->type_name("FILE");
  app.add_option("--tls-key", options.tls_key, "own private key")->type_name("FILE");
  app.add_option("--tls-crl", options.tls_crl, "revocation lists; default: none is looked at")
      ->type_name("FILE");
  add_duration(app, "--timeout", options.timeout_ms,
               "how long to wait for an answer (default 10s)");
}

}  // namespace tierpilot
