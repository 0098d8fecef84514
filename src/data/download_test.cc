#include "data/download.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "data/child.h"
#include "data/tar.h"
#include "data/test_files.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::message_of;
using ::testing::HasSubstr;

std::vector<std::pair<std::string, Bytes>> contents_of(const fs::path& archive,
                                                       TarOptions options = {}) {
  std::vector<std::pair<std::string, Bytes>> found;
  read_tar(
      archive, options, [](const std::string& path) { return path != "skip"; },
      [&](const std::string& path, Bytes bytes) { found.emplace_back(path, std::move(bytes)); });
  return found;
}

TEST(Tar, ReadsPlainAndGzipped) {
  TemporaryFolder folder;
  const std::vector<std::pair<std::string, Bytes>> files = {
      {"package/a", Bytes(1000, 1)}, {"skip", Bytes(513, 2)}, {"b", {}}, {"c", Bytes(512, 3)}};
  test::write_bytes(folder.path() / "x.tar", test::tar(files));
  test::write_bytes(folder.path() / "x.tgz", test::gzip(test::tar(files)));
  const std::vector<std::pair<std::string, Bytes>> expected = {files[0], files[2], files[3]};
  EXPECT_EQ(contents_of(folder.path() / "x.tar"), expected);
  EXPECT_EQ(contents_of(folder.path() / "x.tgz"), expected);
}

TEST(Tar, BoundsAndDamage) {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "x.tgz";
  const Bytes archive = test::tar({{"a", Bytes(5000, 1)}});
  test::write_bytes(path, test::gzip(archive));
  EXPECT_THAT(message_of<DataError>([&] { contents_of(path, {.max_file_bytes = 4999}); }),
              HasSubstr("a has 5000 bytes: expected at most 4999"));
  EXPECT_THAT(message_of<DataError>([&] { contents_of(path, {.max_total_bytes = 4000}); }),
              HasSubstr("unpacks to more than expected"));
  for (const std::size_t size : {100u, 600u, 5000u}) {
    test::write_bytes(path, Bytes(archive.begin(), archive.begin() + size));
    EXPECT_THROW(contents_of(path), DataError) << size;
  }
  Bytes damaged = archive;
  damaged[0] ^= 1;
  test::write_bytes(path, damaged);
  EXPECT_THAT(message_of<DataError>([&] { contents_of(path); }), HasSubstr("not a tar archive"));
  const Bytes packed = test::gzip(archive);
  test::write_bytes(path, Bytes(packed.begin(), packed.end() - 12));
  EXPECT_THROW(contents_of(path), DataError);
  EXPECT_THROW(contents_of(folder.path() / "none"), DataError);
}

TEST(Child, OutputExitCodeAndFolder) {
  TemporaryFolder folder;
  const ChildResult result =
      run_child({"sh", "-c", "pwd; echo to-error >&2; exit 3"}, folder.path(), 60);
  EXPECT_TRUE(result.found);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.output, HasSubstr(folder.path().filename().string()));
  EXPECT_THAT(result.output, HasSubstr("to-error"));
}

TEST(Child, MissingProgramAndArgumentsWithoutAShell) {
  TemporaryFolder folder;
  EXPECT_FALSE(run_child({"no-such-program-at-all"}, folder.path(), 60).found);
  EXPECT_EQ(run_child({"echo", "$(id); *"}, folder.path(), 60).output, "$(id); *\n");
}

TEST(Child, EndsAtTheDeadline) {
  TemporaryFolder folder;
  const ChildResult result = run_child({"cat", "/dev/zero"}, folder.path(), 0.05);
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
}

class Get : public ::testing::Test {
 protected:
  Get() {
    for (const auto& [name, content] : contents_)
      set_.files.push_back({name, content.size(), md5_hex(std::as_bytes(std::span(content)))});
  }
  GetResult get(const fs::path& from) { return get_data(set_, {.root = root(), .from = from}); }
  fs::path root() const { return folder_.path() / "root"; }
  fs::path source(const std::string& name) const { return folder_.path() / "source" / name; }
  void expect_complete() {
    for (const auto& [name, content] : contents_)
      EXPECT_EQ(read_file(root() / set_.name / name), content) << name;
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(root() / set_.name)) files += entry.exists();
    EXPECT_EQ(files, contents_.size());  // no parts left behind
    EXPECT_TRUE(data_status(set_, root()).ready);
  }

  TemporaryFolder folder_;
  const std::vector<std::pair<std::string, Bytes>> contents_ = {
      {"train-images-idx3-ubyte", Bytes(3000, 1)}, {"train-labels-idx1-ubyte", Bytes(30, 2)}};
  CatalogSet set_{"tiny", "", {1, 2, 2}, 10, 2, 2, "", "", "", {}};
};

TEST_F(Get, FromFolderPlainOrGzippedOrOtherwiseNamed) {
  test::write_bytes(source("deep/er/train-images.idx3-ubyte"), contents_[0].second);
  test::write_bytes(source("train-labels-idx1-ubyte.gz"), test::gzip(contents_[1].second));
  const GetResult result = get(source(""));
  EXPECT_FALSE(result.files[0].was_there);
  expect_complete();
  // Again: nothing is needed, not even the source.
  const GetResult again = get(source("gone"));
  EXPECT_TRUE(again.files[0].was_there && again.files[1].was_there);
  EXPECT_EQ(again.source, "");
}

TEST_F(Get, FromArchive) {
  test::write_bytes(
      source("a.tgz"),
      test::gzip(test::tar({{"package/data/" + contents_[0].first, contents_[0].second},
                            {"package/x.js", {1}},
                            {"package/data/" + contents_[1].first, contents_[1].second}})));
  get(source("a.tgz"));
  expect_complete();
}

TEST_F(Get, ArchiveInsideTheFolder) {
  test::write_bytes(source("a.tar"), test::tar({contents_[0], contents_[1]}));
  get(source(""));
  expect_complete();
}

TEST_F(Get, DamagedAndMissingFilesAreFetchedTheGoodOneIsKept) {
  test::write_bytes(root() / "tiny" / contents_[0].first, contents_[0].second);
  test::write_bytes(root() / "tiny" / contents_[1].first, Bytes(30, 9));
  EXPECT_TRUE(data_status(set_, root()).ready);  // by size
  const auto before = fs::last_write_time(root() / "tiny" / contents_[0].first);
  test::write_bytes(source(contents_[1].first), contents_[1].second);
  const GetResult result = get(source(contents_[1].first));
  EXPECT_TRUE(result.files[0].was_there);
  EXPECT_FALSE(result.files[1].was_there);
  EXPECT_EQ(fs::last_write_time(root() / "tiny" / contents_[0].first), before);
  expect_complete();
}

TEST_F(Get, WrongChecksumPutsNothingInPlace) {
  test::write_bytes(source(contents_[0].first), Bytes(3000, 7));
  const std::string text = message_of<DataError>([&] { get(source("")); });
  EXPECT_THAT(text, HasSubstr("wrong checksum for train-images-idx3-ubyte: expected MD5 " +
                              set_.files[0].md5));
  EXPECT_TRUE(fs::is_empty(root() / "tiny"));
}

TEST_F(Get, HalfASetKeepsWhatWasGoodAndNamesTheRest) {
  test::write_bytes(source(contents_[0].first), contents_[0].second);
  EXPECT_THAT(message_of<DataError>([&] { get(source("")); }),
              HasSubstr("tiny: train-labels-idx1-ubyte not found in"));
  EXPECT_EQ(data_status(set_, root()).files_there, 1);
}

TEST_F(Get, BadSources) {
  EXPECT_THAT(message_of<DataError>([&] { get(source("none.tgz")); }),
              HasSubstr("none.tgz: not found"));
  test::write_bytes(source("readme.txt"), {1});
  EXPECT_THAT(message_of<DataError>([&] { get(source("readme.txt")); }),
              HasSubstr("neither a file of tiny nor an archive"));
  test::write_bytes(source("bomb/" + contents_[0].first), test::gzip(Bytes(100'000)));
  EXPECT_THAT(message_of<DataError>([&] { get(source("bomb")); }),
              HasSubstr("decompresses to more than 3000 bytes"));
}

TEST_F(Get, UnwritableRoot) {
  test::write_bytes(source(contents_[0].first), contents_[0].second);
  test::write_bytes(root(), {1});  // a file where the folder should be
  EXPECT_THAT(message_of<DataError>([&] { get(source("")); }),
              HasSubstr("cannot create the folder"));
}

TEST(Catalog, NamesAndChecksums) {
  EXPECT_EQ(find_in_catalog("cifar10").files.size(), 6u);
  EXPECT_THAT(message_of<ConfigError>([] { find_in_catalog("cifar-10"); }),
              HasSubstr("cifar-10: unknown data set; did you mean cifar10? Known: mnist, "
                        "fashion-mnist, cifar10"));
  for (const CatalogSet& set : catalog())
    for (const CatalogFile& file : set.files) EXPECT_EQ(file.md5.size(), 32u);
}

}  // namespace
}  // namespace convoy
