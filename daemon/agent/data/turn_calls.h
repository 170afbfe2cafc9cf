// Turns at other daemons (wire::DataSource.turn): asked for, held and given back. On the event
// loop's thread only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemon/agent/data/data_links.h"
#include "daemon/agent/node/mailbox.h"
#include "daemon/memory/pool/names.h"

namespace tierpilot::agent {

class TurnCalls {
 public:
  using Id = uint64_t;  // of the caller's choice
  struct Told {
    bool turn = false;
    std::string elsewhere;
  };
  using Reply = Mailbox<Told>;

  explicit TurnCalls(std::shared_ptr<DataLinks> links) : links_(std::move(links)) {}

  // This node's own data address, once it is known: others may be sent there, this one never.
  void set_reader(const std::string& address) { reader_ = address; }
  // A daemon that knows no turns gives them to all.
  void ask(Id id, const std::string& address, const DatasetId& dataset, bool wait,
           std::shared_ptr<Reply> reply);
  void done(Id id);
  // Gives the turn back, or leaves the line.
  void drop(Id id) { calls_.erase(id); }

 private:
  struct Call {
    std::shared_ptr<DataLink> link;
    wire::ReadTurn::Client turn = nullptr;
    kj::Promise<void> task = nullptr;
  };

  bool worth_asking(const std::string& elsewhere, const std::string& source) const;

  const std::shared_ptr<DataLinks> links_;
  std::string reader_;
  std::map<Id, Call> calls_;
};

}  // namespace tierpilot::agent
