#include "daemon/agent/data/turn_calls.h"

#include <utility>

#include "rpc/digest.h"

namespace tierpilot::agent {

void TurnCalls::ask(Id id, const std::string& address, const DatasetId& dataset, bool wait,
                    std::shared_ptr<Reply> reply) {
  Call& call = calls_[id];
  call.link = links_->to(address);
  auto request = call.link->source.turnRequest();
  request.setDataset(dataset.name);
  request.setVersion(dataset.version);
  write_digest(request.initDigest(), dataset.digest);
  request.setReader(reader_);
  request.setWait(wait);
  call.task =
      request.send()
          .then([this, &call, address, reply](capnp::Response<wire::DataSource::TurnResults> told) {
            Told answer{told.hasTurn(), told.getElsewhere()};
            if (answer.turn) call.turn = told.getTurn();
            if (!worth_asking(answer.elsewhere, address)) answer.elsewhere.clear();
            reply->put([&] { return Result<Told>(std::move(answer)); });
          })
          .catch_([&call, reply](kj::Exception&& exception) {
            if (exception.getType() == kj::Exception::Type::UNIMPLEMENTED)
              reply->put([] { return Result<Told>(Told{.turn = true, .elsewhere = {}}); });
            else
              reply->fail_with(call.link->failed(exception));
          })
          .eagerlyEvaluate(nullptr);
}

void TurnCalls::done(Id id) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;
  // It is on its way when send() returns, whatever becomes of the promise.
  call->second.task =
      call->second.turn.doneRequest().send().ignoreResult().eagerlyEvaluate([](kj::Exception&&) {});
}

// A source names nodes of its own kind: it must not have this one open other sockets.
bool TurnCalls::worth_asking(const std::string& elsewhere, const std::string& source) const {
  const auto there = Address::parse(elsewhere);
  const auto here = Address::parse(source);
  return there && here && there->kind == here->kind && elsewhere != reader_;
}

}  // namespace tierpilot::agent
