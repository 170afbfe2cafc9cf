#include "rpc/error.h"

#include <gtest/gtest.h>
#include <kj/debug.h>

namespace tierpilot {
namespace {

kj::Exception with_text(kj::Exception::Type type, const char* text) {
  return {type, __FILE__, __LINE__, kj::heapString(text)};
}

TEST(RpcError, CodeAndMessageSurviveAnyNumberOfHops) {
  const Error error{ErrorCode::kExhausted, "node 'a': 3.0 GiB wanted, 1.0 GiB free"};
  kj::String text = kj::heapString(to_exception(error).getDescription());
  for (int hop = 0; hop < 3; ++hop) {
    const Error arrived = to_error(with_text(kj::Exception::Type::FAILED, text.cStr()));
    EXPECT_EQ(arrived.code, error.code);
    EXPECT_EQ(arrived.message, error.message);
    text = kj::str("remote exception: ", text);
  }
}

TEST(RpcError, ForeignExceptionsAreToldByTheirType) {
  using Type = kj::Exception::Type;
  EXPECT_EQ(to_error(with_text(Type::DISCONNECTED, "gone")).code, ErrorCode::kUnreachable);
  EXPECT_EQ(to_error(with_text(Type::UNIMPLEMENTED, "what")).code, ErrorCode::kUnavailable);
  EXPECT_EQ(to_error(with_text(Type::FAILED, "bug")).code, ErrorCode::kIo);
  EXPECT_EQ(to_error(with_text(Type::FAILED, "bug")).message, "bug");
}

TEST(RpcError, TextThatOnlyLooksLikeOursIsForeign) {
  for (const char* text :
       {"[tierpilot ", "[tierpilot bogus] x", "[tierpilot not_found", "[tierpilot ] x"}) {
    const Error error = to_error(with_text(kj::Exception::Type::FAILED, text));
    EXPECT_EQ(error.code, ErrorCode::kIo);
    EXPECT_EQ(error.message, text);
  }
}

TEST(RpcError, ValueOrThrow) {
  EXPECT_EQ(value_or_throw(Result<int>(7)), 7);
  value_or_throw(Status());
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([] {
                 value_or_throw(Result<int>(fail(ErrorCode::kDenied, "no")));
               })) {
    EXPECT_EQ(to_error(*exception).code, ErrorCode::kDenied);
  } else {
    FAIL() << "nothing was thrown";
  }
}

}  // namespace
}  // namespace tierpilot
