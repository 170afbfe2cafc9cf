#include "rpc/stream/open_questions.h"

#include <algorithm>
#include <utility>

namespace tierpilot {
namespace {

bool is_given(capnp::rpc::CapDescriptor::Reader capability) {
  return capability.isSenderHosted() || capability.isSenderPromise();
}

size_t capabilities_of(capnp::rpc::Return::Reader answer) {
  if (!answer.isResults()) return 0;
  const auto all = answer.getResults().getCapTable();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), is_given));
}

}  // namespace

OpenQuestions::OpenQuestions(std::shared_ptr<PeerQuestions> of_peer)
    : of_peer_(std::move(of_peer)) {}
OpenQuestions::~OpenQuestions() {
  remove(count_);
}

void OpenQuestions::received(capnp::rpc::Message::Reader message) {
  switch (message.which()) {
    case capnp::rpc::Message::CALL:
      return asked(message.getCall().getQuestionId());
    case capnp::rpc::Message::BOOTSTRAP:
      return asked(message.getBootstrap().getQuestionId());
    case capnp::rpc::Message::FINISH:
      return let_go(message.getFinish());
    case capnp::rpc::Message::RELEASE:
      return remove(message.getRelease().getReferenceCount());
    default:
      return;
  }
}

void OpenQuestions::sent(capnp::rpc::Message::Reader message) {
  if (message.isReturn()) return answered(message.getReturn());
  // What was promised has come: one capability more, which is released on its own.
  if (message.isResolve())
    add(message.getResolve().isCap() && is_given(message.getResolve().getCap()));
}

void OpenQuestions::asked(uint32_t question) {
  unanswered_.emplace(question, false);
  add(1);
}

void OpenQuestions::answered(capnp::rpc::Return::Reader answer) {
  const auto asked = unanswered_.extract(answer.getAnswerId());
  if (asked && asked.mapped()) return remove(1);
  if (const size_t given = capabilities_of(answer); given > 0) {
    given_[answer.getAnswerId()] = given;
    add(given);
  }
}

void OpenQuestions::let_go(capnp::rpc::Finish::Reader finish) {
  const uint32_t question = finish.getQuestionId();
  if (const auto asked = unanswered_.find(question); asked != unanswered_.end()) {
    asked->second = true;
    return;
  }
  size_t freed = 1;
  if (const auto given = given_.extract(question); given && finish.getReleaseResultCaps())
    freed += given.mapped();
  remove(freed);
}

void OpenQuestions::add(size_t more) {
  count_ += more;
  if (!of_peer_) return;
  of_peer_->count += more;
  if (more > 0 && of_peer_->count > of_peer_->most && of_peer_->on_excess) of_peer_->on_excess();
}

// Never below zero: capabilities that go out as parameters of calls are released too, and not
// counted.
void OpenQuestions::remove(size_t fewer) {
  fewer = std::min(fewer, count_);
  count_ -= fewer;
  if (of_peer_) of_peer_->count -= fewer;
}

}  // namespace tierpilot
