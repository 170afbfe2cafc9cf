// Calls of a library that is loaded, redirected: in one that binds late, and in one whose table is
// read-only.
#include "swap/device/imports.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tierpilot::swap {
namespace {

int takes = 0, gives = 0;

int take(void** data, size_t alignment, size_t bytes) {
  ++takes;
  return posix_memalign(data, alignment, bytes);
}

void give(void* data) {
  ++gives;
  free(data);
}

const Import kBoth[] = {{"posix_memalign", reinterpret_cast<void*>(&take)},
                        {"free", reinterpret_cast<void*>(&give)}};

class Imports : public testing::TestWithParam<std::string> {
 protected:
  Imports() {
    takes = gives = 0;
    library_ = dlopen((std::string(CALLERS) + "/lib" + GetParam() + ".so").c_str(), RTLD_LAZY);
    if (!library_) throw std::runtime_error(dlerror());
  }
  ~Imports() override { dlclose(library_); }

  template <class Function>
  Function* function(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void take_and_give(size_t bytes = 100) {
    void* const data = function<void*(size_t)>("call_take")(bytes);
    ASSERT_TRUE(data);
    function<void(void*)>("call_give")(data);
  }

  void* library_;
};

TEST_P(Imports, AreRedirected) {
  EXPECT_EQ(redirect("lib" + GetParam(), kBoth), 1);
  take_and_give();
  EXPECT_EQ(takes, 1);
  EXPECT_EQ(gives, 1);
  function<void (*())(void*)>("give_function")()(std::malloc(1));
  EXPECT_EQ(gives, 2);
}

TEST_P(Imports, AreRedirectedAfterTheyWereUsed) {
  take_and_give();
  EXPECT_EQ(redirect("lib" + GetParam(), kBoth), 1);
  take_and_give();
  EXPECT_EQ(takes, 1);
  EXPECT_EQ(gives, 1);
}

TEST_P(Imports, StayWhereOneIsNotThere) {
  const Import some[] = {kBoth[0], {"calloc", reinterpret_cast<void*>(&take)}};
  EXPECT_EQ(redirect("lib" + GetParam(), some), 0);
  take_and_give();
  EXPECT_EQ(takes, 0);
}

TEST_P(Imports, OfOtherLibrariesStay) {
  EXPECT_EQ(redirect("libnone_of_these.so", kBoth), 0);
  take_and_give();
  EXPECT_EQ(takes + gives, 0);
}

INSTANTIATE_TEST_SUITE_P(Libraries, Imports, testing::Values("caller_lazy", "caller_now"),
                         [](const auto& library) { return library.param; });

}  // namespace
}  // namespace tierpilot::swap
