#include "coordinator/service/refusal_audit.h"

#include "audit_log.h"

namespace tierpilot {
namespace {

class RefusalAuditTest : public test::AuditLog {
 protected:
  RefusalAudit audit_;
};

TEST_F(RefusalAuditTest, TheFirstIsWrittenAtOnce) {
  audit_.tick(kSecondNs);
  audit_.refused("user 'bob' over tls", "cancel task 71");
  audit_.refused("user 'eve' over unix", "submit tasks");
  EXPECT_EQ(out().str(),
            "audit: user 'bob' over tls: cancel task 71: refused, its role does not allow it\n"
            "audit: user 'eve' over unix: submit tasks: refused, its role does not allow it\n");
  audit_.tick(3 * kSecondNs);
  audit_.flush();
  EXPECT_EQ(out().str().find("more"), std::string::npos);
}

TEST_F(RefusalAuditTest, OfManyTwoLinesASecondAreWritten) {
  audit_.tick(kSecondNs);
  for (int i = 0; i < 10'000; ++i) {
    audit_.refused("user 'bob' over tls", "cancel task " + std::to_string(i));
    audit_.tick(kSecondNs + i * 99'000);
  }
  audit_.tick(2 * kSecondNs);
  EXPECT_EQ(out().str(),
            "audit: user 'bob' over tls: cancel task 0: refused, its role does not allow it\n"
            "audit: user 'bob' over tls: refused 9999 times more, its role does not allow it; the "
            "last: cancel task 9999\n");
}

TEST_F(RefusalAuditTest, ASecondOneIsWrittenAsItIs) {
  audit_.tick(kSecondNs);
  audit_.refused("user 'bob' over tls", "cancel task 1");
  audit_.refused("user 'bob' over tls", "cancel task 2");
  audit_.flush();
  EXPECT_NE(out().str().find("cancel task 2: refused, its role does not allow it\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tierpilot
