#include "daemon/agent/link/event_stream.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

ReplicaChange replica(std::string name, uint64_t version, bool in_fast = true) {
  return {std::move(name), version, 100, in_fast, false, false};
}

ExitedEvent exited(uint64_t task, std::vector<ReplicaChange> written = {}) {
  ExitedEvent event;
  event.attempt = {task, 1};
  event.exit.how = TaskEnd::kExited;
  event.exit.written = std::move(written);
  return event;
}

std::vector<uint64_t> sequences(const std::vector<const Event*>& events) {
  std::vector<uint64_t> numbers;
  for (const auto* event : events) numbers.push_back(event->sequence);
  return numbers;
}

TEST(EventStream, NumbersRiseByOneAndStayUntilAcknowledged) {
  EventStream stream;
  stream.add(StartedEvent{{1, 1}, 10});
  stream.add(exited(1));
  EXPECT_EQ(sequences(stream.batch()), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(sequences(stream.batch()), (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(stream.acknowledge(1).empty());
  stream.add(StartedEvent{{2, 1}, 11});
  EXPECT_EQ(sequences(stream.batch()), (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(stream.acknowledge(3), (std::vector<AttemptId>{{1, 1}}));
  EXPECT_TRUE(stream.empty());
}

TEST(EventStream, AcknowledgingTheFutureOrThePastDoesNothingMore) {
  EventStream stream;
  stream.add(exited(1));
  EXPECT_TRUE(stream.acknowledge(99).empty());  // never sent: cannot be acknowledged
  EXPECT_EQ(sequences(stream.batch()), (std::vector<uint64_t>{1}));
  EXPECT_EQ(stream.acknowledge(99).size(), 1u);
  EXPECT_TRUE(stream.acknowledge(0).empty());
}

TEST(EventStream, UnsentReplicaEventsCoalesce) {
  EventStream stream;
  for (int i = 0; i < 1001; ++i) stream.add(replica("d", 1, i % 2 == 0));
  stream.add(replica("e", 1));
  ASSERT_EQ(stream.size(), 2u);
  const auto events = stream.batch();
  EXPECT_TRUE(std::get<ReplicaChange>(events[0]->body).in_fast);
}

// What one version came to says nothing of another one, nor of other bytes under its number.
TEST(EventStream, ContentsDoNotReplaceOneAnother) {
  auto other = replica("d", 2);
  other.digest = {0, 1};
  EventStream stream;
  stream.add(replica("d", 2));
  stream.add(other);
  stream.add(replica("d", 1, false));
  EXPECT_EQ(stream.batch().size(), 3u);
  stream.registered({replica("d", 2), other});
  const auto events = stream.batch();
  EXPECT_TRUE(std::get<ReplicaChange>(events[0]->body).in_fast);
  EXPECT_EQ(std::get<ReplicaChange>(events[0]->body).digest, ContentDigest{});
  EXPECT_TRUE(std::get<ReplicaChange>(events[1]->body).in_fast);
  EXPECT_FALSE(std::get<ReplicaChange>(events[2]->body).in_fast);
}

TEST(EventStream, DamageIsToldWhateverComesAfterIt) {
  auto damaged = replica("d", 1, false);
  damaged.damaged = true;
  EventStream stream;
  stream.add(damaged);
  stream.add(replica("d", 1));
  auto events = stream.batch();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::get<ReplicaChange>(events[0]->body).damaged);
  stream.registered({replica("d", 1)});
  events = stream.batch();
  EXPECT_TRUE(std::get<ReplicaChange>(events[0]->body).damaged);
}

TEST(EventStream, SentReplicaEventsStayAsTheyAre) {
  EventStream stream;
  stream.add(replica("d", 1));
  stream.batch();
  stream.add(replica("d", 2));
  const auto events = stream.batch();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<ReplicaChange>(events[0]->body).version, 1u);
  EXPECT_EQ(std::get<ReplicaChange>(events[1]->body).version, 2u);
}

TEST(EventStream, BatchesAreBounded) {
  EventStream stream;
  for (uint64_t task = 1; task <= 10; ++task) stream.add(exited(task));
  EXPECT_EQ(sequences(stream.batch(4)), (std::vector<uint64_t>{1, 2, 3, 4}));
  stream.acknowledge(4);
  EXPECT_EQ(sequences(stream.batch(4)), (std::vector<uint64_t>{5, 6, 7, 8}));
}

TEST(EventStream, RegistrationOutdatesReplicaEvents) {
  EventStream stream;
  stream.add(replica("sent", 1));
  stream.add(replica("dropped", 1));
  stream.batch();
  stream.add(replica("unsent", 1));
  stream.registered({replica("sent", 1, false)});
  const auto events = stream.batch();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_FALSE(std::get<ReplicaChange>(events[0]->body).in_fast);
  EXPECT_FALSE(std::get<ReplicaChange>(events[1]->body).in_fast) << "what is no more there is gone";
}

TEST(EventStream, WhatDoesNotFitARegistrationFollows) {
  EventStream stream;
  std::vector<ReplicaChange> all;
  for (int i = 0; i < 1'000; ++i) all.push_back(replica("d" + std::to_string(i), 1, true));
  stream.registered(all, 300);
  EXPECT_EQ(stream.size(), 700u);
  size_t told = 300;
  for (auto batch = stream.batch(); !batch.empty(); batch = stream.batch()) {
    EXPECT_LE(batch.size(), EventStream::kBatchEvents);
    for (const auto* event : batch)
      EXPECT_EQ(std::get<ReplicaChange>(event->body).name, "d" + std::to_string(told++));
    stream.acknowledge(batch.back()->sequence);
  }
  EXPECT_EQ(told, all.size());
  stream.registered(all, 300);
  stream.registered(all, 300);
  EXPECT_EQ(stream.size(), 700u) << "those of a registration that failed are not told twice";
}

TEST(EventStream, PresentStateFollowsAnOldExit) {
  EventStream stream;
  stream.add(exited(1, {replica("d", 2)}));
  stream.batch();
  stream.registered({replica("d", 2, false)});
  const auto events = stream.batch();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_FALSE(std::get<ReplicaChange>(events[1]->body).in_fast);
}

TEST(EventStream, TellsThatThereIsSomething) {
  int told = 0;
  EventStream stream([&] { ++told; });
  stream.add(exited(1));
  EXPECT_EQ(told, 1);
}

// With each registration all that runs is told again, and the updates may never come through.
TEST(EventStream, UnsentStartsOfAnAttemptCoalesce) {
  EventStream stream;
  for (int i = 0; i < 100; ++i) {
    stream.add(StartedEvent{{1, 1}, 10});
    stream.add(StartedEvent{{2, 1}, 11});
  }
  EXPECT_EQ(stream.size(), 2u);
}

}  // namespace
}  // namespace tierpilot::agent
