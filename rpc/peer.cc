#include "rpc/peer.h"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace tierpilot {
namespace {

namespace ip = boost::asio::ip;

// A listener for both families sees IPv4 hosts as ::ffff:10.0.0.7.
ip::address plain(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

}  // namespace

bool is_at(const Peer& peer, const Address& address) {
  if (address.kind == Address::Kind::kUnix)
    return peer.transport == "unix" && peer.uid == ::geteuid();
  const auto from = Address::parse("tls:" + peer.address);
  if (peer.transport != "tls" || !from) return false;
  boost::system::error_code not_literal, unknown;
  const auto host = ip::make_address(address.host, not_literal);
  if (not_literal)
    return std::any_of(peer.hosts.begin(), peer.hosts.end(), [&](const std::string& name) {
      return ::strcasecmp(name.c_str(), address.host.c_str()) == 0;
    });
  const auto seen = ip::make_address(from->host, unknown);
  return !unknown && plain(host) == plain(seen);
}

}  // namespace tierpilot
