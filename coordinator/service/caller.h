// Who calls, and what he may do. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "coordinator/service/access.h"
#include "coordinator/service/backup_service.h"
#include "coordinator/service/core.h"
#include "coordinator/service/node_cards.h"
#include "coordinator/service/refusal_audit.h"
#include "coordinator/service/submission_audit.h"
#include "rpc/event_loop.h"

namespace tierpilot {

// What all clients share.
struct ServiceContext {
  EventLoop& loop;
  Core& core;
  NodeCards& cards;
  BackupMaker& backups;
  int64_t started_ms = 0;
  std::function<uint64_t()> rejected_frames;
  AccessRules access{};
  uint64_t access_version = 0;
  SubmissionAudit submissions{};
  RefusalAudit refusals{};

  // For every call from now on.
  void set_access(AccessRules rules) {
    access = std::move(rules);
    ++access_version;
  }
};

class Caller {
 public:
  Caller(ServiceContext& shared, Peer peer)
      : shared_(shared), peer_(std::move(peer)), who_(described(peer_)) {}

  ServiceContext& shared() const { return shared_; }
  Core& core() const { return shared_.core; }
  const Peer& peer() const { return peer_; }
  // As the audit log names him: "user 'bob' over tls".
  std::string name() const { return who_ + " over " + peer_.transport; }
  bool sees_environments() const { return shared_.access.sees_environments(peer_); }

  // These throw kDenied where he may only do less.
  void allow_reading() const;
  // What is accepted goes into the log later, see SubmissionAudit.
  void allow_submit() const;
  // Goes into the log with who asked for it; where it is refused, see RefusalAudit.
  void allow_change(Role needed, const std::string& what) const;
  // Its submitter's, or an operator's.
  void allow_change_of(const Task& task, const std::string& what) const;

 private:
  Role role() const;
  ServiceContext& shared_;
  Peer peer_;
  const std::string who_;
  // As the rules of this version say; looked up again when there are others.
  mutable std::optional<uint64_t> role_version_;
  mutable Role role_ = Role::kNone;
};

// Ends the call with this error.
[[noreturn]] void refuse(ErrorCode code, std::string message);

}  // namespace tierpilot
