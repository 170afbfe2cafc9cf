#include "coordinator/service/submission_audit.h"

#include "audit_log.h"

namespace tierpilot {
namespace {

class SubmissionAuditTest : public test::AuditLog {
 protected:
  static SubmitReceipt receipt(uint64_t first_task, uint64_t tasks) {
    return {first_task, first_task, tasks, ""};
  }

  SubmissionAudit audit_;
};

TEST_F(SubmissionAuditTest, SaysWhoSubmittedWhat) {
  audit_.accepted("user 'bob' over tls", receipt(71, 1));
  audit_.accepted("user 'ann' over unix", receipt(72, 3));
  audit_.tick(kSecondNs);
  EXPECT_EQ(out().str(),
            "audit: user 'ann' over unix: submit tasks 72 to 74\n"
            "audit: user 'bob' over tls: submit task 71\n");
}

TEST_F(SubmissionAuditTest, WritesALineASecondForEachHoweverManyThereAre) {
  audit_.tick(kSecondNs);
  for (uint64_t i = 0; i < 10'000; ++i) {
    audit_.accepted("user 'bob' over tls", receipt(100 + 2 * i, 2));
    audit_.tick(kSecondNs + static_cast<int64_t>(i) * 99'000);
  }
  EXPECT_EQ(out().str(), "") << "the second is not over";
  audit_.tick(2 * kSecondNs);
  EXPECT_EQ(out().str(),
            "audit: user 'bob' over tls: submit 20000 tasks between 100 and 20099, in 10000 "
            "submissions\n");
  audit_.tick(4 * kSecondNs);
  audit_.flush();
  EXPECT_EQ(out().str().find('\n'), out().str().size() - 1) << "nothing twice";
}

TEST_F(SubmissionAuditTest, WritesTheLastOnesAtTheEnd) {
  audit_.tick(kSecondNs);
  audit_.accepted("user 'bob' over tls", receipt(5, 1));
  audit_.flush();
  EXPECT_EQ(out().str(), "audit: user 'bob' over tls: submit task 5\n");
}

}  // namespace
}  // namespace tierpilot
