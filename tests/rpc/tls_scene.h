// A server that asks for certificates, and who has good ones.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "rpc/error.h"
#include "tests/rpc/server_thread.h"
#include "tests/rpc/test_certificates.h"

namespace tierpilot::test {

inline constexpr const char* kLocalNames = "DNS:localhost,IP:127.0.0.1";

class Tls : public testing::Test {
 protected:
  Tls() { limits_.handshake_timeout_ms = 5'000; }

  ServerThread& serve(const TlsFiles& files) {
    server_.emplace(*Address::parse("tls:127.0.0.1:0"), files, limits_);
    return *server_;
  }
  Address named(const std::string& host) {
    return {Address::Kind::kTls, {}, host, server_->address().port};
  }
  Error refusal(const Address& address, const TlsFiles& files) {
    auto error = error_of([&] { connect(loop_, address, files, limits_); });
    return error.value_or(Error{ErrorCode::kInvalid, "was not refused"});
  }

  TemporaryFolder folder_;
  TestAuthority authority_{folder_.path(), "cluster"};
  TestAuthority stranger_{folder_.path(), "stranger"};
  TlsFiles server_files_ = authority_.issue("coordinator", kLocalNames);
  TlsFiles client_files_ = authority_.issue("node-7", kLocalNames);
  RpcLimits limits_;
  EventLoop loop_;
  std::optional<ServerThread> server_;
};

}  // namespace tierpilot::test
