#include "train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string toml_error(const std::string& text) {
  TrainConfig config;
  return error_of([&] { read_toml(config, text, "run.toml"); });
}

const ConfigField& field(const std::string& name) {
  for (const ConfigField& candidate : config_fields())
    if (candidate.name == name) return candidate;
  throw std::logic_error("no field " + name);
}

std::string flag_error(const std::string& name, const std::string& text) {
  TrainConfig config;
  return error_of([&] { set_from_text(config, field(name), text); });
}

TEST(Config, ReadsTomlAndSaysWhichFieldsItSet) {
  TrainConfig config;
  const auto set = read_toml(config,
                             "model = 'resnet18'\nbatch = 64\nlr = 1\nnesterov = true\n"
                             "milestones = [1, 2.5]\n",
                             "run.toml");
  EXPECT_EQ(set.size(), 5u);
  EXPECT_EQ(config.model, "resnet18");
  EXPECT_EQ(config.batch, 64);
  EXPECT_EQ(config.lr, 1.0);
  EXPECT_TRUE(config.nesterov);
  EXPECT_EQ(config.milestones, (std::vector<double>{1, 2.5}));
}

TEST(Config, UnknownKeyNamesFileLineAndNearest) {
  EXPECT_THAT(toml_error("model = 'shallow'\nbacth = 3\n"),
              AllOf(HasSubstr("run.toml:2"), HasSubstr("'bacth'"), HasSubstr("batch?")));
}

TEST(Config, TypeErrorsNameFileLineFieldAndBothKinds) {
  EXPECT_THAT(toml_error("\nbatch = 'abc'"),
              AllOf(HasSubstr("run.toml:2: batch"), HasSubstr("whole number"), HasSubstr("'abc'")));
  EXPECT_THAT(toml_error("lr = true"), AllOf(HasSubstr("lr"), HasSubstr("not true")));
  EXPECT_THAT(toml_error("lr = nan"), AllOf(HasSubstr("lr"), HasSubstr("nan")));
  EXPECT_THAT(toml_error("lr = -inf"), HasSubstr("lr"));
  EXPECT_THAT(toml_error("model = 3"), HasSubstr("model must be a text"));
  EXPECT_THAT(toml_error("lr = 1\n[model]\na = 1"), HasSubstr("run.toml:2: tables"));
  EXPECT_THAT(toml_error("model = {a = 1}"), HasSubstr("run.toml:1: tables"));
  EXPECT_THAT(toml_error("[,'-"), HasSubstr("run.toml:1"));
  EXPECT_THAT(toml_error("model.a = 1"), HasSubstr("a table"));
  EXPECT_EQ(toml_error("milestones = [\n  1, # one\n  2,\n]\nmodel = '[{'\n"), "");
  EXPECT_THAT(toml_error("milestones = ['a']"), HasSubstr("list of numbers"));
  EXPECT_THAT(toml_error("milestones = [3, 1]"), HasSubstr("rising"));
  EXPECT_THAT(toml_error("model = "), HasSubstr("run.toml:1"));
  EXPECT_THAT(toml_error("schedule = 'cosin'"), HasSubstr("did you mean cosine?"));
}

TEST(Config, LettersBeyondAsciiStandInQuotes) {
  TrainConfig config;
  read_toml(config, "# \xc3\xa9\nout = \"\xc3\xa9\\\"\xc3\xa9\"  # \xc3\xa9\n", "run.toml");
  EXPECT_EQ(config.out, "\xc3\xa9\"\xc3\xa9");
  EXPECT_THAT(toml_error("batch = 3\n\xef\xbb\xb7 = 3"), HasSubstr("run.toml:2"));
  EXPECT_THAT(toml_error("batch = \xc3\xa9"), HasSubstr("quotes"));
  EXPECT_THAT(toml_error("init = '\xc3\xa9'"), HasSubstr("double quotes"));
  EXPECT_THAT(toml_error("init = \"\xc3\""), HasSubstr("UTF-8"));
  // toml++ 3.3 meets undefined behaviour where these letters stand.
  EXPECT_THAT(toml_error("lr = 128'c-\xef\xba\xbf\x30'"), HasSubstr("run.toml:1"));
  EXPECT_THAT(toml_error("out = \"\"\"a\n\"\"\""), HasSubstr("one line"));
}

TEST(Config, UnclosedTextsAndControlCharactersAreRefused) {
  // toml++ 3.3 meets undefined behaviour on the first of these.
  for (const std::string& text :
       {std::string("''=[999\0\0'\xD0\xA8=[n(", 15), std::string("model = \"shallow\nbatch = 3\n"),
        std::string("batch = 3\v\n"), std::string("model = 'shallow")})
    EXPECT_THAT(toml_error(text), HasSubstr("run.toml:1")) << text;
}

TEST(Config, FlagsAreChecked) {
  for (const char* wrong :
       {"0", "-1", "abc", "1e9", "", "12x", "1.5", "99999999999999999999", "nan"})
    EXPECT_THAT(flag_error("batch", wrong), HasSubstr("--batch must be a whole number")) << wrong;
  for (const char* wrong : {"nan", "-0.1", "inf", "x", ""})
    EXPECT_THAT(flag_error("lr", wrong), HasSubstr("--lr must be a number")) << wrong;
  EXPECT_THAT(flag_error("epochs", "0"), HasSubstr("--epochs"));
  EXPECT_THAT(flag_error("milestones", "1,,2"), HasSubstr("--milestones"));
  TrainConfig config;
  set_from_text(config, field("batch"), "1e3");
  set_from_text(config, field("milestones"), "10,20.5");
  EXPECT_EQ(config.batch, 1000);
  EXPECT_EQ(config.milestones, (std::vector<double>{10, 20.5}));
}

TEST(Config, PrintedTomlReadsBackExactly) {
  TrainConfig config;
  config.model = "a \"quoted\" \\ name\n\x7f \xf0\x9f\x9a\x9a";
  config.lr = 0.1 + 0.2;
  config.epsilon = 1e-8;
  config.milestones = {1.0 / 3, 2};
  config.seed = 9007199254740992;
  config.nesterov = true;
  TrainConfig copy;
  EXPECT_EQ(read_toml(copy, to_toml(config), "copy").size(), config_fields().size());
  EXPECT_EQ(copy, config);
}

TEST(Config, EveryFieldIsInTheTableOnce) {
  EXPECT_EQ(to_json(TrainConfig{}).size(), config_fields().size());
}

TEST(Config, RateScalesWithTheBatch) {
  TrainConfig config;
  config.lr = 0.1;
  config.batch = 512;
  EXPECT_DOUBLE_EQ(schedule_options(config).rate, 0.1);
  config.base_batch = 256;
  EXPECT_DOUBLE_EQ(schedule_options(config).rate, 0.2);
}

TEST(Config, AugmentationFollowsTheDataUnlessSaid) {
  TrainConfig config;
  config.data = "mnist";
  EXPECT_EQ(augment_options(config).crop_padding, 0);
  config.data = "cifar10";
  EXPECT_EQ(augment_options(config).crop_padding, 4);
  EXPECT_TRUE(augment_options(config).flip);
  config.augment = "none";
  EXPECT_FALSE(augment_options(config).flip);
  config.augment = "crop:2";
  EXPECT_EQ(augment_options(config).crop_padding, 2);
  config.augment = "reflect:2,alternate";
  EXPECT_EQ(augment_options(config).crop_padding, 2);
  EXPECT_TRUE(augment_options(config).reflect);
  EXPECT_TRUE(augment_options(config).flip && augment_options(config).alternate);
  for (const char* wrong : {"crop", "crop:", "crop:0", "crop:999", "crop:4x", "", "flip,,flip",
                            "turn", "flip,", "reflect", "crop:4,reflect:4"}) {
    config.augment = wrong;
    EXPECT_THAT(error_of([&] { augment_options(config); }), HasSubstr("--augment")) << wrong;
  }
}

TEST(Config, ListsOfNamesAreTakenApart) {
  TrainConfig config;
  EXPECT_FALSE(start_options(config).whiten || start_options(config).identity);
  EXPECT_TRUE(frozen_layers(config).empty());
  config.start = "identity,whiten";
  config.freeze = "conv1,layer1";
  EXPECT_TRUE(start_options(config).whiten && start_options(config).identity);
  EXPECT_EQ(frozen_layers(config), (std::vector<std::string>{"conv1", "layer1"}));
  for (const char* wrong : {"whitened", "whiten,", ","}) {
    config.start = wrong;
    EXPECT_THAT(error_of([&] { start_options(config); }), HasSubstr("--start")) << wrong;
  }
}

TEST(Config, ChoicesThatExcludeEachOtherAreErrors) {
  TrainConfig config;
  EXPECT_THAT(error_of([&] { check_config(config); }), HasSubstr("--model"));
  config.model = "shallow";
  EXPECT_THAT(error_of([&] { check_config(config); }), HasSubstr("--data"));
  config.data = "mnist";
  EXPECT_EQ(error_of([&] { check_config(config); }), "");
  config.optimizer = "adam";
  config.nesterov = true;
  EXPECT_THAT(error_of([&] { check_config(config); }), HasSubstr("--nesterov"));
  config.nesterov = false;
  config.init = "a.safetensors";
  config.start = "whiten";
  EXPECT_THAT(error_of([&] { check_config(config); }), HasSubstr("--start"));
  config.start = "";
  config.lookahead = "often";
  EXPECT_THAT(error_of([&] { check_config(config); }), HasSubstr("--lookahead"));
  config.lookahead = "5:0.95";
  config.schedule = "step";
  EXPECT_THAT(error_of([&] { check_config(config); }), HasSubstr("--milestones"));
}

}  // namespace
}  // namespace convoy
