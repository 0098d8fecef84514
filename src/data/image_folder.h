// ImageNet-style folders: DIR/train/CLASS/*.jpg|jpeg|png and DIR/val or DIR/test of the same form.
// Images are read and decoded when they are asked for; only their names are in memory.
//
// Files that cannot be used are named in the log, skipped and counted. A small set
// (kDecodeAtOpenBytes) is decoded whole when it is opened, so that its count is exact. In a larger
// one, opening checks each file's header and that its end is there; a file whose middle then turns
// out to be damaged is reported once and replaced by the next good image of the same class, so that
// labels, counts and epochs stay as they were, and the same on every rank.
//
// Of a part, only the names of its own files stay in memory, and only those files are looked into
// when it is opened. So nobody knows which files of other parts cannot be used: all count, and
// those that cannot be used are replaced, never skipped.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/cut.h"
#include "data/dataset.h"

namespace convoy {

constexpr std::uintmax_t kDecodeAtOpenBytes = 16 << 20;  // a second of work or so

struct ImageFolderOptions {
  Shape shape{3, 224, 224};
  std::uintmax_t decode_at_open_bytes = kDecodeAtOpenBytes;
  Cut cut = {};
};

class ImageFolder final : public Dataset {
 public:
  // `folder` has one folder per class. Where `class_names` is empty the classes are all folders
  // found, in alphabetical order; else a folder that is not among them is an error. Samples take
  // turns over the classes, so that the first N of them are balanced. Throws DataError where a
  // class has no usable image.
  ImageFolder(const std::filesystem::path& folder, const ImageFolderOptions& options,
              std::vector<std::string> class_names = {});
  ~ImageFolder() override;

  std::size_t size() const override;
  std::size_t first() const override;
  std::size_t whole_size() const override;
  Shape shape() const override;
  int classes() const override;
  int label(std::size_t index) const override;
  void read(std::size_t index, std::span<std::uint8_t> image) const override;
  std::vector<float> mean() const override;
  std::vector<float> deviation() const override;

  const std::vector<std::string>& class_names() const;
  std::size_t skipped() const;   // files left out when the set was opened
  std::size_t replaced() const;  // files that were found damaged, and others stand in for

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ImageFolderSplit {
  std::unique_ptr<ImageFolder> train;
  std::unique_ptr<ImageFolder> test;
};

// train, and val (or test where there is no val), with the classes of train. Throws DataError.
ImageFolderSplit open_image_folder(const std::filesystem::path& folder, const Shape& shape,
                                   const Cut& train_cut = {}, const Cut& test_cut = {});

}  // namespace convoy
