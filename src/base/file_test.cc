#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "base/error.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Files : public testing::Test {
 protected:
  Files() {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("convoy-file-{}-{}", ::getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  static std::string text_of(const fs::path& path) {
    const auto bytes = read_file(path);
    return {bytes.begin(), bytes.end()};
  }

  fs::path folder_;
};

TEST_F(Files, WhatIsWrittenIsRead) {
  std::string text(3'000'001, 'x');
  text[1'500'000] = '\0';
  write_file_atomically(folder_ / "a", text);
  EXPECT_EQ(text_of(folder_ / "a"), text);
  write_file_atomically(folder_ / "empty", "");
  EXPECT_TRUE(read_file(folder_ / "empty").empty());
}

TEST_F(Files, MissingFileIsNamed) {
  EXPECT_THAT([&] { read_file(folder_ / "none"); },
              ThrowsMessage<DataError>(
                  AllOf(HasSubstr((folder_ / "none").string()), HasSubstr("No such file"))));
  EXPECT_THROW(read_file(folder_), DataError);
}

TEST_F(Files, ReadStopsAtTheLimit) {
  write_file_atomically(folder_ / "four", "1234");
  EXPECT_EQ(read_file(folder_ / "four", 4).size(), 4u);
  EXPECT_THROW(read_file(folder_ / "four", 3), DataError);
  EXPECT_THROW(read_file("/dev/zero", 1000), DataError);
}

TEST_F(Files, FolderIsLockedUntilItsHolderEnds) {
  {
    const FolderLock held(folder_);
    EXPECT_THROW(FolderLock{folder_}, DataError);
  }
  FolderLock next(folder_);
  FolderLock moved = std::move(next);
  EXPECT_THROW(FolderLock{folder_}, DataError);
  EXPECT_THROW(FolderLock{folder_ / "none"}, DataError);
  EXPECT_THROW(FolderLock::after_others(folder_ / "none"), DataError);
}

TEST_F(Files, OneMayWaitForTheLockOfAFolder) {
  std::atomic<bool> released = false;
  auto held = std::make_unique<FolderLock>(folder_);
  std::thread next([&] {
    const FolderLock lock = FolderLock::after_others(folder_);
    EXPECT_TRUE(released);
  });
  released = true;
  held.reset();
  next.join();
  EXPECT_NO_THROW(FolderLock{folder_});
}

TEST_F(Files, OnlyUnfinishedFilesAreRemoved) {
  write_file_atomically(folder_ / "whole", "1");
  write_file_atomically(folder_ / "whole.12.part", "2");
  remove_unfinished(folder_);
  remove_unfinished(folder_ / "none");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "whole"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "whole.12.part"));
}

TEST_F(Files, TasksOfOneProcessMayWriteTheSameFile) {
  const fs::path target = folder_ / "a";
  const auto write_often = [&](char letter) {
    for (int i = 0; i < 200; ++i) write_file_atomically(target, std::string(1000, letter));
  };
  { const std::jthread one(write_often, 'x'), other(write_often, 'y'); }
  const std::string text = text_of(target);
  EXPECT_TRUE(text == std::string(1000, 'x') || text == std::string(1000, 'y'));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1);
}

// The number of a closed file may belong to somebody else by then.
TEST_F(Files, AFileThatCannotBeRenamedIsClosedOnce) {
  const fs::path target = folder_ / "a";
  fs::create_directories(target / "in the way");
  int other = -1;
  {
    AtomicFile file(target);
    file.write("text");
    EXPECT_THROW(file.commit(), DataError);
    other = ::dup(0);  // takes the number that commit() has given back
  }
  EXPECT_EQ(::close(other), 0);
}

TEST_F(Files, AtomicFileReplacesOnCommitOnly) {
  const fs::path target = folder_ / "a";
  write_file_atomically(target, "old");
  {
    AtomicFile file(target);
    file.write("half");
    EXPECT_EQ(text_of(target), "old");
  }
  EXPECT_EQ(text_of(target), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  AtomicFile file(target);
  file.write("new ");
  file.write("text");
  file.commit();
  EXPECT_EQ(text_of(target), "new text");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, UnwritableTargetIsNamed) {
  EXPECT_THAT([&] { AtomicFile file(folder_ / "none" / "a"); },
              ThrowsMessage<DataError>(HasSubstr((folder_ / "none" / "a").string())));
}

// A folder stands where the file should go: the rename fails, and no part is left behind.
TEST_F(Files, FailedCommitLeavesNothing) {
  fs::create_directories(folder_ / "a" / "inside");
  {
    AtomicFile file(folder_ / "a");
    file.write("text");
    EXPECT_THROW(file.commit(), DataError);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, FullDiskIsAnError) {
  // /dev/full cannot be renamed onto, so write through a link beside the target: the part's own
  // name.
  const fs::path target = folder_ / "a";
  fs::create_symlink("/dev/full",
                     fmt::format("{}.{}.{}.part", target.string(), ::getpid(), ::gettid()));
  {
    AtomicFile file(target);
    EXPECT_THAT([&] { file.write("text"); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(target.string()), HasSubstr("No space"))));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Files, MakesFoldersWithParents) {
  make_folder(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
  EXPECT_NO_THROW(make_folder(folder_ / "a" / "b"));
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THAT([&] { make_folder(folder_ / "file" / "c"); },
              ThrowsMessage<DataError>(HasSubstr("cannot create the folder")));
}

// Published test vectors: RFC 1321 and FIPS 180-2.
TEST(Digests, GiveThePublishedValues) {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  EXPECT_EQ(md5_hex({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex(bytes("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
  Sha256 whole;
  whole.add(bytes("abc"));
  EXPECT_EQ(whole.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  pieces.add(bytes("abcdbcdecdefdefgefghfghighij"));
  pieces.add({});
  pieces.add(bytes("hijkijkljklmklmnlmnomnopnopq"));
  EXPECT_EQ(pieces.hex(), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace convoy
