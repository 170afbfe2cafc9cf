#include "rpc/sockets.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tierpilot {
namespace {

class Sockets : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tierpilot-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    address_ = *Address::parse("unix:" + (folder_ / "x.sock").string());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  Address address_;
};

TEST_F(Sockets, UnixSocketIsForOwnerAndGroup) {
  auto socket = listen_on(address_);
  ASSERT_TRUE(socket) << socket.error().message;
  struct stat file {};
  ASSERT_EQ(::lstat(address_.path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0660u);
  EXPECT_TRUE(connect_unix(address_));
  remove_socket_file(*socket);
  EXPECT_FALSE(std::filesystem::exists(address_.path));
}

TEST_F(Sockets, StaleSocketIsReplaced) {
  listen_on(address_).value().fd.reset();  // as kill -9 leaves it
  ASSERT_TRUE(std::filesystem::exists(address_.path));
  EXPECT_EQ(connect_unix(address_).error().code, ErrorCode::kUnreachable);
  auto socket = listen_on(address_);
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_TRUE(connect_unix(address_));
}

TEST_F(Sockets, LivingSocketIsAConflict) {
  auto first = listen_on(address_);
  ASSERT_TRUE(first);
  auto second = listen_on(address_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(connect_unix(address_));
}

TEST_F(Sockets, OtherFilesAreLeftAlone) {
  std::ofstream(address_.path) << "precious";
  auto socket = listen_on(address_);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, ErrorCode::kConflict);
  EXPECT_EQ(std::filesystem::file_size(address_.path), 8u);
}

TEST_F(Sockets, FileOfASuccessorIsLeftAlone) {
  auto first = listen_on(address_);
  ASSERT_TRUE(first);
  std::filesystem::rename(address_.path, address_.path + ".old");
  auto second = listen_on(address_);
  ASSERT_TRUE(second);
  remove_socket_file(*first);
  EXPECT_TRUE(connect_unix(address_));
}

TEST_F(Sockets, MissingFolderIsNamed) {
  const auto socket = listen_on(*Address::parse("unix:/nowhere/at/all.sock"));
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().message.find("/nowhere/at/all.sock"), std::string::npos);
}

TEST_F(Sockets, FullBacklogIsExhausted) {
  auto socket = listen_on(address_);
  ASSERT_TRUE(socket);
  std::vector<UniqueFd> waiting;
  Result<UniqueFd> next = connect_unix(address_);
  while (next && waiting.size() < 10'000) {
    waiting.push_back(std::move(*next));
    next = connect_unix(address_);
  }
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, ErrorCode::kExhausted);
}

TEST_F(Sockets, TcpPortZeroBecomesTheRealPort) {
  auto socket = listen_on(*Address::parse("tls:127.0.0.1:0"));
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_NE(socket->address.port, 0);
  EXPECT_FALSE(listen_on(socket->address));
}

TEST_F(Sockets, UnknownHostIsNamed) {
  const auto socket = listen_on(*Address::parse("tls:no.such.host.invalid:1"));
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().message.find("no.such.host.invalid"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot
