// convoy data: fetches data sets and lists what is there.

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "cli/command.h"
#include "data/download.h"

namespace convoy {
namespace {

struct DataArguments {
  std::string name;
  std::string root = "data";
  std::string from;
  bool json = false;
};

std::string megabytes(std::uint64_t bytes) { return fmt::format("{:.1f} MB", double(bytes) / 1e6); }

// One line on a terminal that is written over; nothing where standard error is a file.
class ProgressLine {
 public:
  explicit ProgressLine(std::string name) : name_(std::move(name)), shown_(::isatty(2) == 1) {}
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& what) const {
    if (!shown_) return;
    fmt::print(stderr, "\r\x1b[K{}: {} ...", name_, what);
    std::fflush(stderr);
  }

 private:
  std::string name_;
  bool shown_;
};

nlohmann::json get_answer(const CatalogSet& set, const GetResult& result, double seconds) {
  nlohmann::json files = nlohmann::json::array();
  for (const GotFile& file : result.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"was_there", file.was_there}});
  return {{"name", set.name},   {"folder", result.folder.string()},
          {"files", files},     {"source", result.source},
          {"train", set.train}, {"test", set.test},
          {"seconds", seconds}};
}

void run_get(const DataArguments& arguments) {
  const CatalogSet& set = find_in_catalog(arguments.name);
  const double begin_s = now_s();
  GetResult result;
  {
    const ProgressLine line(set.name);
    result = get_data(set, {.root = arguments.root,
                            .from = arguments.from,
                            .progress = [&](const std::string& what) { line.show(what); }});
  }
  const double seconds = now_s() - begin_s;
  std::uint64_t bytes = 0;
  std::size_t fetched = 0;
  for (const GotFile& file : result.files) {
    bytes += file.bytes;
    fetched += file.was_there ? 0 : 1;
  }
  if (fetched == 0)
    fmt::print("{}: already there in {} ({} files, {}, checksums right)\n", set.name,
               result.folder.string(), result.files.size(), megabytes(bytes));
  else
    fmt::print(
        "{}: {} of {} files from {} into {} in {:.1f} s, checksums right; try: convoy train "
        "--model "
        "{} --data {}{}\n",
        set.name, fetched, result.files.size(), result.source, result.folder.string(), seconds,
        set.shape.channels == 1 ? "mnist_cnn" : "resnet18", set.name,
        arguments.root == "data" ? "" : " --data-root " + arguments.root);
  if (arguments.json) print_answer(get_answer(set, result, seconds));
}

void run_list(const DataArguments& arguments) {
  nlohmann::json sets = nlohmann::json::array();
  fmt::print("{:<14} {:<9} {:>7} {:>8} {:>8}  {}\n", "name", "shape", "classes", "train", "test",
             "where");
  for (const CatalogSet& set : catalog()) {
    const SetStatus status = data_status(set, arguments.root);
    const std::string where =
        status.ready
            ? fmt::format("{} ({})", status.folder.string(), megabytes(status.bytes))
            : fmt::format("{}; run: convoy data get {}{}",
                          status.files_there == 0
                              ? "not here"
                              : fmt::format("{} of {} files", status.files_there, set.files.size()),
                          set.name, arguments.root == "data" ? "" : " --root " + arguments.root);
    fmt::print("{:<14} {:<9} {:>7} {:>8} {:>8}  {}\n", set.name, set.shape.to_string(), set.classes,
               set.train, set.test, where);
    sets.push_back({{"name", set.name},
                    {"title", set.title},
                    {"shape", set.shape.to_string()},
                    {"classes", set.classes},
                    {"train", set.train},
                    {"test", set.test},
                    {"ready", status.ready},
                    {"folder", status.folder.string()},
                    {"files", set.files.size()},
                    {"files_there", status.files_there},
                    {"bytes", status.bytes}});
  }
  fmt::print(
      "\n--data also takes synthetic:CxHxW:CLASSES:COUNT (made up on the spot, any shape) and the "
      "path of a\n"
      "folder with train/CLASS/*.jpg and val/CLASS/*.jpg (or .png).\n");
  if (arguments.json) print_answer({{"sets", sets}});
}

}  // namespace

void add_data_command(CLI::App& app) {
  const auto arguments = std::make_shared<DataArguments>();
  CLI::App* data = app.add_subcommand("data", "Fetch data sets and list them");
  data->require_subcommand(1);
  data->footer("Examples:\n  convoy data get mnist\n  convoy data list");

  CLI::App* get = data->add_subcommand("get", "Fetch a data set, verify it and put it in place");
  get->add_option("name", arguments->name, "mnist, fashion-mnist or cifar10")->required();
  get->add_option("--from", arguments->from,
                  "Take it from this archive, file or folder instead of the network");
  get->add_option("--root", arguments->root, "Folder of all data sets")->capture_default_str();
  get->add_flag("--json", arguments->json, "End with one JSON object on one line");
  get->footer(
      "Files that are there already are verified and kept.\nExamples:\n  convoy data get mnist\n"
      "  convoy data get cifar10 --from ~/Downloads/cifar-10-binary.tar.gz");
  get->callback([arguments] { run_get(*arguments); });

  CLI::App* list = data->add_subcommand("list", "Which data sets there are, and which are here");
  list->add_option("--root", arguments->root, "Folder of all data sets")->capture_default_str();
  list->add_flag("--json", arguments->json, "End with one JSON object on one line");
  list->footer("Example:\n  convoy data list --json");
  list->callback([arguments] { run_list(*arguments); });
}

}  // namespace convoy
