#include "tools/cluster/connection.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>

#include <optional>
#include <system_error>

#include "rpc/address.h"
#include "rpc/client.h"
#include "tools/cluster/duration.h"

namespace tierpilot {
namespace {

Result<Tls> load_tls(const ConnectOptions& options, Address::Kind kind) {
  const TlsFiles files{options.tls_ca, options.tls_certificate, options.tls_key, options.tls_crl};
  const int given = !files.ca.empty() + !files.certificate.empty() + !files.key.empty();
  if (given == 3) return TlsIdentity::load(files);
  if (given == 0 && kind == Address::Kind::kUnix) return Tls();
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: needs --tls-ca, --tls-cert and --tls-key", options.address));
}

}  // namespace

std::string draw_request_id() {
  std::array<unsigned char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

// In the order of construction: the connection must go before its loop.
struct ClusterConnection::Impl {
  EventLoop loop;
  kj::Own<RpcConnection> connection;
  std::optional<wire::Cluster::Client> cluster;
};

ClusterConnection::ClusterConnection(const ConnectOptions& options)
    : address_(options.address), timeout_ms_(options.timeout_ms), impl_(std::make_unique<Impl>()) {}

ClusterConnection::~ClusterConnection() = default;

Result<std::unique_ptr<ClusterConnection>> ClusterConnection::open(const ConnectOptions& options) {
  std::unique_ptr<ClusterConnection> connection(new ClusterConnection(options));
  if (auto status = connection->connect(options); !status) return tl::unexpected(status.error());
  return connection;
}

Status ClusterConnection::connect(const ConnectOptions& options) {
  const auto address = Address::parse(options.address);
  if (!address) return tl::unexpected(address.error());
  const auto tls = load_tls(options, address->kind);
  if (!tls) return tl::unexpected(tls.error());
  auto connected = wait(RpcConnection::connect(impl_->loop, *address, *tls));
  if (!connected) return tl::unexpected(connected.error());
  impl_->connection = kj::mv(*connected);
  impl_->cluster = impl_->connection->bootstrap().castAs<wire::Cluster>();
  return greet();
}

Status ClusterConnection::greet() {
  const auto own = own_program(program_invocation_short_name);
  auto request = cluster().helloRequest();
  write_program(own, request.initProgram());
  auto answer = call(kj::mv(request));
  // Coordinators from before there was a greeting do not know the call.
  if (!answer && answer.error().code != ErrorCode::kUnavailable)
    return tl::unexpected(answer.error());
  coordinator_ = {.program = "tierpilot-coordinator"};
  if (answer) coordinator_ = read_program(answer->getProgram(), coordinator_.program);
  return check_programs(own, coordinator_);
}

wire::Cluster::Client& ClusterConnection::cluster() {
  return *impl_->cluster;
}
EventLoop& ClusterConnection::loop() {
  return impl_->loop;
}

Error ClusterConnection::late_error(int64_t waited_ms) const {
  return {
      ErrorCode::kTimeout,
      fmt::format("no answer within {}", format_duration_ns(static_cast<double>(waited_ms) * 1e6))};
}

Error ClusterConnection::explain(Error error) const {
  const bool connecting = !impl_->connection;
  // Before there is a connection, silence too means that nobody can be reached there.
  if (connecting && error.code == ErrorCode::kTimeout) error.code = ErrorCode::kUnreachable;
  if (connecting && error.code == ErrorCode::kUnreachable)
    error.message = fmt::format(
        "coordinator at {} cannot be reached: {}; is tierpilot-coordinator running there? Another "
        "address is given by --connect or TIERPILOT_COORDINATOR",
        address_, error.message);
  else if (connecting || error.code == ErrorCode::kUnreachable || error.code == ErrorCode::kTimeout)
    error.message = fmt::format("coordinator at {}: {}", address_, error.message);
  return error;
}

}  // namespace tierpilot
