#include "coordinator/service/refusal_audit.h"

#include <algorithm>

#include "audit_log.h"

namespace tierpilot {
namespace {

class RefusalAuditTest : public test::AuditLog {
 protected:
  RefusalAudit audit_;
};

TEST_F(RefusalAuditTest, AFewAreWrittenAtOnce) {
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

TEST_F(RefusalAuditTest, OfManyElevenLinesASecondAreWritten) {
  audit_.tick(kSecondNs);
  for (int i = 0; i < 10'000; ++i) {
    audit_.refused("user 'bob' over tls", "cancel task " + std::to_string(i));
    audit_.tick(kSecondNs + i * 99'000);
  }
  audit_.tick(2 * kSecondNs);
  const auto written = out().str();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 11);
  EXPECT_NE(written.find("cancel task 9: refused, its role does not allow it\n"
                         "audit: user 'bob' over tls: 9990 more refused, its role does not allow "
                         "it; the last: cancel task 9999\n"),
            std::string::npos)
      << written;
}

}  // namespace
}  // namespace tierpilot
