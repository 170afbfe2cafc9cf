#include "rpc/stream/open_questions.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

namespace tierpilot {
namespace {

class Questions : public testing::Test {
 protected:
  // KJ's members make it noexcept(false), which testing::Test is not.
  ~Questions() noexcept override = default;

  template <class Make>
  capnp::rpc::Message::Reader message(const Make& make) {
    messages_.push_back(std::make_unique<capnp::MallocMessageBuilder>());
    auto root = messages_.back()->initRoot<capnp::rpc::Message>();
    make(root);
    return root.asReader();
  }
  void ask(uint32_t question) {
    open_->received(message([&](auto root) { root.initCall().setQuestionId(question); }));
  }
  void answer(uint32_t question, unsigned capabilities = 0) {
    open_->sent(message([&](auto root) {
      auto answer = root.initReturn();
      answer.setAnswerId(question);
      auto table = answer.initResults().initCapTable(capabilities + 1);
      for (unsigned i = 0; i < capabilities; ++i) table[i].setSenderHosted(i);
      table[capabilities].setReceiverHosted(7);  // one of the peer's own
    }));
  }
  void finish(uint32_t question, bool with_capabilities = false) {
    open_->received(message([&](auto root) {
      auto finish = root.initFinish();
      finish.setQuestionId(question);
      finish.setReleaseResultCaps(with_capabilities);
    }));
  }
  void release(uint32_t references) {
    open_->received(message([&](auto root) { root.initRelease().setReferenceCount(references); }));
  }

  std::vector<std::unique_ptr<capnp::MallocMessageBuilder>> messages_;
  std::shared_ptr<PeerQuestions> of_peer_ = std::make_shared<PeerQuestions>();
  std::optional<OpenQuestions> open_{of_peer_};
};

TEST_F(Questions, OneIsOpenUntilItIsAnsweredAndLetGoOf) {
  ask(1);
  ask(2);
  EXPECT_EQ(open_->count(), 2u);
  answer(1);
  EXPECT_EQ(open_->count(), 2u);
  finish(1);
  EXPECT_EQ(open_->count(), 1u);
  finish(2);
  EXPECT_EQ(open_->count(), 1u) << "its call goes on";
  answer(2);
  EXPECT_EQ(open_->count(), 0u);
}

TEST_F(Questions, ItIsLetGoOfOnce) {
  ask(1);
  ask(2);
  for (int i = 0; i < 5; ++i) finish(1);
  EXPECT_EQ(open_->count(), 2u);
  answer(1);
  EXPECT_EQ(open_->count(), 1u);
}

TEST_F(Questions, CapabilitiesCountUntilTheyAreReleased) {
  ask(1);
  answer(1, 3);
  EXPECT_EQ(open_->count(), 4u);
  finish(1);
  EXPECT_EQ(open_->count(), 3u);
  release(2);
  EXPECT_EQ(open_->count(), 1u);
  ask(2);
  answer(2, 2);
  finish(2, true);
  EXPECT_EQ(open_->count(), 1u);
  release(99);
  EXPECT_EQ(open_->count(), 0u);
}

TEST_F(Questions, WhatWasPromisedAndHasComeCountsToo) {
  open_->sent(message([](auto root) { root.initResolve().initCap().setSenderHosted(1); }));
  EXPECT_EQ(open_->count(), 1u);
  open_->sent(message([](auto root) { root.initResolve().initException(); }));
  EXPECT_EQ(open_->count(), 1u);
}

TEST_F(Questions, ThoseOfAPeerAreOfAllItsConnections) {
  int told = 0;
  of_peer_->most = 3;
  of_peer_->on_excess = [&] { ++told; };
  std::optional<OpenQuestions> other(of_peer_);
  other->received(message([](auto root) { root.initBootstrap().setQuestionId(0); }));
  ask(1);
  ask(2);
  EXPECT_EQ(told, 0);
  ask(3);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(of_peer_->count, 4u);
  open_.reset();
  EXPECT_EQ(of_peer_->count, 1u);
  other.reset();
  EXPECT_EQ(of_peer_->count, 0u);
}

}  // namespace
}  // namespace tierpilot
