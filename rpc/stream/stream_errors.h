// Why a connection ended, from what Asio and OpenSSL say.
#pragma once

#include <kj/exception.h>

#include <boost/system/error_code.hpp>
#include <string>

namespace tierpilot {

kj::Exception lost(std::string why);
// kDenied when the peer refused this program's certificate, with what to do; else kUnreachable.
kj::Exception lost(boost::system::error_code error);
bool is_end_of_stream(boost::system::error_code error);

}  // namespace tierpilot
