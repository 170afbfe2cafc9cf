#include "base/sysroot.h"

#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "tests/support/scratch_directory.h"

namespace {

// Of folders that are read: after so many entries the next one fails; -1: none does.
int entries_before_failure = -1;

}  // namespace

// Stands before the C library's, by the name that the C++ library calls.
extern "C" dirent* failing_readdir(DIR* folder) __asm__("readdir");
extern "C" dirent* failing_readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (entries_before_failure == 0) {
    errno = EIO;
    return nullptr;
  }
  entries_before_failure -= entries_before_failure > 0;
  return real(folder);
}

namespace tierpilot {
namespace {

TEST(Sysroot, ParsesIdLists) {
  EXPECT_EQ(*parse_id_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_TRUE(parse_id_list("")->empty());
  for (const char* text : {"a", "1-", "-1", "1,,2", "0-99999999", "3 4"})
    EXPECT_FALSE(parse_id_list(text)) << text;
  std::string again = "0-65535";
  EXPECT_EQ(parse_id_list(again)->size(), 65'536U);
  for (int i = 0; i < 12; ++i) again += "," + again;
  EXPECT_FALSE(parse_id_list(again)) << "of which there are few, again and again";
}

TEST(Sysroot, FormatsIdLists) {
  EXPECT_EQ(format_id_list({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_id_list({}), "");
}

TEST(Sysroot, ReadsRelativeToItsRoot) {
  Sysroot root("/proc/self");
  auto comm = root.read("/comm");
  ASSERT_TRUE(comm);
  EXPECT_EQ(*comm, "unit_base");
  auto missing = root.read("/no-such-file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Sysroot, AMissingFolderIsEmptyAndOneThatCannotBeReadIsAnError) {
  const ScratchDirectory scratch;
  for (const char* name : {"/b", "/a", "/c"}) std::ofstream(scratch.path() + name) << "text";
  const Sysroot root(scratch.path());
  EXPECT_EQ(root.try_list("/").value(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(root.try_list("/no-such-folder").value().empty());
  const auto file = root.try_list("/a");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find(scratch.path() + "/a"), std::string::npos);
  EXPECT_TRUE(root.list("/a").empty());
}

TEST(Sysroot, AFolderThatFailsInTheMiddleIsAnError) {
  const ScratchDirectory scratch;
  for (const char* name : {"/a", "/b", "/c"}) std::ofstream(scratch.path() + name) << "text";
  const Sysroot root(scratch.path());
  for (const int entries : {0, 3, 4}) {
    entries_before_failure = entries;
    EXPECT_FALSE(root.try_list("/")) << entries;
    entries_before_failure = entries;
    EXPECT_NO_THROW(EXPECT_TRUE(root.list("/").empty()));
    entries_before_failure = -1;
  }
  EXPECT_EQ(root.list("/").size(), 3U);
}

TEST(Sysroot, LargeFilesAreReadWhereTheyAreExpected) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path() + "/large") << std::string((1 << 20) + 1, 'x');
  const Sysroot root(scratch.path());
  const auto refused = root.read("/large");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("larger than 1.0 MiB"), std::string::npos);
  EXPECT_EQ(root.read("/large", SIZE_MAX).value().size(), size_t{(1 << 20) + 1});
}

}  // namespace
}  // namespace tierpilot
