#include "coordinator/core/queue/task_book.h"

#include <gmock/gmock.h>

namespace tierpilot {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Task task_at(uint64_t id, double place_s, TaskState state = TaskState::kQueued) {
  Task task;
  task.id = id;
  task.place_s = place_s;
  task.state = state;
  return task;
}

TEST(TaskBook, QueuesByPlaceThenById) {
  TaskBook book;
  book.add({task_at(1, 5), task_at(2, 3), task_at(3, 5), task_at(4, 4)}, {{}, {}, {}, {}});
  EXPECT_THAT(book.queue(), ElementsAre(Pair(3, 2), Pair(4, 4), Pair(5, 1), Pair(5, 3)));
}

TEST(TaskBook, ATaskThatComesBackStandsWhereItStood) {
  TaskBook book;
  book.add({task_at(1, 5), task_at(2, 3), task_at(3, 4)}, {{}, {}, {}});
  book.advance(*book.find(3), TaskState::kAssigned);
  EXPECT_THAT(book.queue(), ElementsAre(Pair(3, 2), Pair(5, 1)));
  book.enqueue(*book.find(3));
  EXPECT_THAT(book.queue(), ElementsAre(Pair(3, 2), Pair(4, 3), Pair(5, 1)));
  book.remove(2);
  EXPECT_THAT(book.queue(), ElementsAre(Pair(4, 3), Pair(5, 1)));
}

TEST(TaskBook, ThoseThatRunAreCountedAsTheyComeAndGo) {
  TaskBook book;
  auto gang = task_at(3, 3, TaskState::kRunning);
  gang.spec.gang.ranks = 2;
  book.add({task_at(1, 5), task_at(2, 3, TaskState::kRunning), gang}, {{}, {}, {}});
  EXPECT_EQ(book.in_state(TaskState::kRunning), 1U) << "a gang is told by its ranks";
  book.advance(*book.find(1), TaskState::kAssigned);
  EXPECT_EQ(book.in_state(TaskState::kAssigned), 1U);
  book.start(*book.find(1));
  EXPECT_EQ(book.in_state(TaskState::kAssigned), 0U);
  EXPECT_EQ(book.in_state(TaskState::kRunning), 2U);
  book.enqueue(*book.find(1));
  book.advance(*book.find(2), TaskState::kSucceeded);
  EXPECT_EQ(book.in_state(TaskState::kRunning), 0U);
  book.advance(*book.find(1), TaskState::kAssigned);
  book.start(*book.find(1));
  book.remove(1);
  EXPECT_EQ(book.in_state(TaskState::kRunning), 0U);
}

TEST(TaskBook, ATaskThatWaitedForAnotherIsQueuedAtItsPlace) {
  TaskBook book;
  book.add({task_at(1, 5), task_at(2, 3, TaskState::kWaiting)}, {{}, {1}});
  EXPECT_THAT(book.queue(), ElementsAre(Pair(5, 1)));
  EXPECT_THAT(book.release_children(1, 0), ElementsAre(2));
  EXPECT_THAT(book.queue(), ElementsAre(Pair(3, 2), Pair(5, 1)));
}

TEST(TaskBook, AllArePlacedAnewAndOnlyQueuedOnesAreInTheQueue) {
  TaskBook book;
  book.add({task_at(1, 0), task_at(2, 0), task_at(3, 0, TaskState::kWaiting)}, {{}, {}, {1}});
  book.add({task_at(4, 0), task_at(5, 0)}, {{}, {}});
  book.advance(*book.find(2), TaskState::kRunning);
  book.place_anew([](const Task& task) { return 10.0 - static_cast<double>(task.id); });
  EXPECT_THAT(book.queue(), ElementsAre(Pair(5, 5), Pair(6, 4), Pair(9, 1)));
  book.enqueue(*book.find(2));
  book.release_children(1, 0);
  EXPECT_THAT(book.queue(),
              ElementsAre(Pair(5, 5), Pair(6, 4), Pair(7, 3), Pair(8, 2), Pair(9, 1)));
}

}  // namespace
}  // namespace tierpilot
