// hexllm recipe: list, show, validate, schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "tests/cli/expect_error.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Model() { return DataPath("models/smollm2_135m"); }

void ExpectError(const Outcome& outcome, int status, const std::string& part) {
  ExpectError(outcome, status, std::vector<std::string>{part});
}

TEST(RecipeCommand, ListsSchemesAndModels) {
  const Outcome list = RunHexllm({"recipe", "list"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out,
              AllOf(HasSubstr("\n  16a4w_block  "), HasSubstr("\n  cpu-w4a8  "),
                    HasSubstr("\n  llama3_2-1b_instruct  ")));
  EXPECT_LT(list.out.find("cpu-w4a8"), list.out.find("For one model:"));
  EXPECT_GT(list.out.find("smollm2_135m"), list.out.find("For one model:"));
}

// What show prints is a recipe of the same meaning.
TEST(RecipeCommand, ShownRecipesAreValidFiles) {
  const Outcome show = RunHexllm({"recipe", "show", "phi_4_mini"});
  ASSERT_EQ(show.status, 0) << show.err;
  const TempDir dir;
  const std::string file = dir.Write("copy.json", show.out);
  const Outcome valid = RunHexllm({"recipe", "validate", file});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_EQ(valid.out, file + ": valid\n");
  EXPECT_EQ(RunHexllm({"recipe", "show", file}).out, show.out);
}

TEST(RecipeCommand, SchemaIsJson) {
  const auto schema = ParseJson(RunHexllm({"recipe", "schema"}).out);
  ASSERT_TRUE(schema.ok());
  EXPECT_TRUE(schema->contains("properties"));
}

TEST(RecipeCommand, ValidatesAgainstAModel) {
  const TempDir dir;
  const auto write = [&](const std::string& names) {
    return dir.Write("r.json", R"({"name": "r", "defaults": {"scheme": "16a4w"},
      "rules": [{"names": [")" + names +
                                   R"("], "scheme": "16a8w"}]})");
  };
  const Outcome valid =
      RunHexllm({"recipe", "validate", write("*.v_proj"), "--model", Model()});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.out,
              AllOf(HasSubstr(": valid for "), HasSubstr(" layers 16a4w, "),
                    HasSubstr(" 16a8w\n")));
  const std::string file = write("*.wv");
  EXPECT_EQ(RunHexllm({"recipe", "validate", file}).status, 0);
  ExpectError(RunHexllm({"recipe", "validate", file, "--model", Model()}), 3,
              "'*.wv' matches no layer of this model");
  const std::string rotated = dir.Write(
      "r.json",
      R"({"name": "r", "defaults": {"scheme": "16a8w"}, "r1": "hadamard",
          "smooth": 0.5})");
  ExpectError(RunHexllm({"recipe", "validate", rotated, "--model",
                         DataPath("models/gemma2_2b")}),
              4, "r1: ");
  const std::string artifact = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", artifact, "--recipe",
                       rotated, "--calib-tokens", "1,2,3"})
                .status,
            0);
  const Outcome fp =
      RunHexllm({"logits", artifact, "--model", Model(), "--stage", "fp",
                 "--tokens", "1,2", "-o", dir.File("l")});
  EXPECT_EQ(fp.status, 0) << fp.err;
  const std::string found = "m.hxl: expected a checkpoint, found an artifact";
  ExpectError(RunHexllm({"recipe", "validate", file, "--model", artifact}), 2,
              found);
  ExpectError(RunHexllm({"recipe", "search", artifact, "-q", "--budget-mb", "9",
                         "-o", dir.File("s.json")}),
              2, found);
  ExpectError(RunHexllm({"logits", artifact, "--model", artifact, "--stage",
                         "fp", "--tokens", "1,2", "-o", dir.File("l")}),
              2, found);
}

TEST(RecipeCommand, ErrorsNameTheFileAndThePlace) {
  const TempDir dir;
  const auto validate = [&](const std::string& text) {
    return RunHexllm({"recipe", "validate", dir.Write("r.json", text)});
  };
  ExpectError(validate("{"), 3, "r.json: malformed JSON");
  ExpectError(
      validate(R"({"name": "r", "defaults": {"scheme": "16a4w", "bits": 4}})"),
      3, "r.json: defaults: unknown key 'bits'");
  ExpectError(validate(R"({"name": "r", "defaults": {"scheme": "16a4"}})"), 4,
              "unknown scheme '16a4'; did you mean '16a4w'");
  ExpectError(RunHexllm({"recipe", "show", "smollm2"}), 2,
              "did you mean 'smollm2_135m'");
  ExpectError(RunHexllm({"recipe", "show", dir.File("none.json")}), 5,
              "none.json");
}

// One that the user names must fit the model as it stands; a model's default is
// made to.
TEST(RecipeCommand, OnlyDefaultsAreFitted) {
  const TempDir dir;
  const std::string model = DataPath("models/gemma2_2b");
  ExpectError(RunHexllm({"recipe", "validate", "gemma2-2b", "--model", model}),
              4, "layer 'model.layers.0.self_attn.q_proj': expected blocks");
  const auto logits = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> args = {
        "logits",         model,   "--stage", "qdq",        "--tokens", "1,2",
        "--calib-tokens", "1,2,3", "-o",      dir.File("l")};
    args.insert(args.end(), flags.begin(), flags.end());
    return RunHexllm(args);
  };
  ExpectError(logits({"--recipe", "gemma2-2b"}), 4, "expected blocks");
  const Outcome fitted = logits({"--decoder-model", "gemma2-2b"});
  EXPECT_EQ(fitted.status, 0) << fitted.err;
}

// A recipe is what it says, not what it is called.
TEST(RecipeFlag, FloatRecipesAreKnownByTheirSchemes) {
  const TempDir dir;
  const std::string rounded = dir.Write(
      "a.json", R"({"name": "fp32", "defaults": {"scheme": "fp16"}})");
  const std::string plain = dir.Write(
      "b.json", R"({"name": "mine", "defaults": {"scheme": "fp32"}})");
  const auto logits = [&](const std::string& recipe, const std::string& stage) {
    return RunHexllm({"logits", Model(), "--tokens", "1,2", "--stage", stage,
                      "--recipe", recipe, "-o", dir.File("l.safetensors")});
  };
  ExpectError(logits(rounded, "fp"), 2, "expected fp32");
  ExpectError(logits(plain, "qdq"), 2, "expected a quantized recipe");
  EXPECT_EQ(logits(rounded, "qdq").status, 0);
  EXPECT_EQ(logits(plain, "fp").status, 0);
}

// The arguments of a compile of the model to `out`, with `flags`.
std::vector<std::string> Compile(const std::string& out,
                                 const std::vector<std::string>& flags) {
  std::vector<std::string> args = {"compile", Model(), "-q", "-o", out};
  args.insert(args.end(), flags.begin(), flags.end());
  return args;
}

TEST(RecipeFlag, OfNoStageIsRefused) {
  const TempDir dir;
  ExpectError(RunHexllm({"eval", Model(), "--tasks", "wikitext", "--data-dir",
                         dir.path(), "--stages", "fp", "--recipe", "nonsense"}),
              2, "--recipe: expected with a stage that is quantized");
}

TEST(RecipeFlag, OutputsDestroyNoInput) {
  const TempDir dir;
  const std::string text =
      R"({"name": "mine", "defaults": {"scheme": "cpu-w8a8"}})";
  const std::string recipe = dir.Write("r.json", text);
  const std::string chats = dir.Write("c.json", R"(["hello"])");
  const std::string out = dir.File("m.hxl");
  const auto refused = [&](const std::string& output,
                           const std::vector<std::string>& flags) {
    ExpectError(RunHexllm(Compile(output, flags)), 2, "input of this command");
  };
  refused(recipe, {"--recipe", recipe});
  refused(out, {"--recipe", recipe, "--quant-attrs", recipe});
  refused(out, {"--recipe", "16a8w", "--calib-samples", chats, "--quant-attrs",
                chats});
  EXPECT_EQ(ReadWholeFile(recipe), text);
  ExpectError(RunHexllm(Compile(out, {"--recipe", recipe, "--quant-attrs",
                                      dir.path() + "/./m.hxl"})),
              2, "--quant-attrs: expected another file");
  EXPECT_EQ(dir.CountFiles(), 2u);
}

// Also by way of --model, of a weight file's folder, and of --data-dir.
TEST(OutputFlag, DestroysNoPartOfACheckpoint) {
  const TempDir dir;
  const std::string model = dir.File("model");
  std::filesystem::copy(Model(), model);
  const std::string weights = model + "/model.safetensors";
  const std::string before = ReadWholeFile(weights);
  const std::string config = model + "/config.json";
  const std::string tokenizer = model + "/tokenizer.json";
  std::filesystem::create_directory(dir.File("wikitext-2"));
  const std::string text = dir.Write("wikitext-2/test.txt", "text");
  const std::string artifact = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", model, "-q", "-o", artifact}).status, 0);
  const auto refused = [](const std::vector<std::string>& args) {
    ExpectError(RunHexllm(args), 2, "input of this command");
  };
  refused({"logits", artifact, "--stage", "fp", "--model", model, "--tokens",
           "1", "-o", weights});
  refused({"logits", weights, "--tokens", "1", "-o", config});
  refused({"compile", weights, "-q", "-o", tokenizer});
  refused({"compile", model, "-q", "--tokenizer-model", text, "-o", text});
  refused({"eval", model, "--tasks", "wikitext", "--data-dir", dir.path(),
           "--json", text});
  EXPECT_EQ(ReadWholeFile(weights), before);
}

TEST(SocFlag, UnknownChipsAreNamedBeforeTheWork) {
  for (const char* command : {"logits", "eval"}) {
    ExpectError(RunHexllm({command, Model(), "--soc", "SM9999"}), 2, "SM9999");
  }
  ExpectError(RunHexllm({"logits", Model(), "--tokens", "1", "-o", "/dev/null",
                         "--stage", "fq"}),
              2, "expected fp, qdq or device");
}

TEST(SocFlag, IsRefusedWhereNoChipMatters) {
  const TempDir dir;
  ExpectError(RunHexllm({"compile", Model(), "-q", "--soc", "SM8650",
                         "--recipe", "cpu-w8a8", "-o", dir.File("m.hxl")}),
              2, "--soc: expected");
  ExpectError(RunHexllm({"logits", Model(), "--tokens", "1", "--soc", "SM8650",
                         "-o", dir.File("l.safetensors")}),
              2, "--soc: expected");
  EXPECT_EQ(dir.CountFiles(), 0u);
}

TEST(RecipeFlag, QuantAttrsAreWrittenOrRefused) {
  const TempDir dir;
  const std::string out = dir.File("m.hxl");
  const std::string attrs = dir.File("a.json");
  ExpectError(RunHexllm(Compile(out, {"--quant-attrs", attrs})), 2,
              "--quant-attrs: expected with a recipe that quantizes");
  // Before anything is calibrated.
  ExpectError(RunHexllm(Compile(out, {"--recipe", "cpu-w8a8", "--quant-attrs",
                                      "/nowhere/a.json"})),
              5, "/nowhere/a.json");
  EXPECT_EQ(dir.CountFiles(), 0u);
  const Outcome done =
      RunHexllm(Compile(out, {"--recipe", "16a8w", "--quant-attrs", attrs}));
  EXPECT_EQ(done.status, 0) << done.err;
  const auto json = ParseJson(ReadWholeFile(attrs));
  ASSERT_TRUE(json.ok());
  EXPECT_FALSE((*json)["values"].empty());
}

TEST(CalibrationFlags, AreRefusedWhereNothingUsesThem) {
  const TempDir dir;
  const std::string out = dir.File("m.hxl");
  for (const char* recipe : {"fp32", "fp16", "cpu-w4a8"}) {
    const Outcome refused =
        RunHexllm(Compile(out, {"--recipe", recipe, "--calib-tokens", "1,2"}));
    EXPECT_EQ(refused.status, 2) << recipe;
    EXPECT_THAT(refused.err, HasSubstr("a recipe that calibrates"));
  }
  ExpectError(
      RunHexllm(Compile(out, {"--recipe", "16a8w", "--calib-limit", "3"})), 2,
      "--calib-limit: expected with");
  ExpectError(
      RunHexllm(Compile(out, {"--recipe", "16a8w", "--data-dir", dir.path()})),
      2, "--data-dir: expected with --calib-tasks");
  for (const char* limit : {"0", "-1", "9223372036854775808", "1.5"}) {
    ExpectError(RunHexllm(Compile(out, {"--recipe", "16a8w", "--calib-tokens",
                                        "1", "--calib-limit", limit})),
                2, "expected a whole number from 1 to 9223372036854775807");
  }
  EXPECT_EQ(dir.CountFiles(), 0u);
}

// With a chat template as well, which would render nothing for it.
TEST(CalibrationFlags, MessagesNeedContent) {
  const TempDir dir;
  const std::string chats =
      dir.Write("c.json", R"([{"messages": [{"role": "user"}]}])");
  ExpectError(RunHexllm(Compile(dir.File("m.hxl"), {"--recipe", "16a8w",
                                                    "--calib-samples", chats})),
              3, "content");
}

// What follows a flag's value is the model.
TEST(CalibrationFlags, LeavePositionalArgumentsAlone) {
  const TempDir dir;
  for (const auto& [flag, value] :
       {std::pair{"--calib-tokens", "1,2"}, {"--calib-prompt", "Hello"}}) {
    const Outcome done = RunHexllm({"compile", flag, value, Model(), "-q",
                                    "--recipe", "16a8w", "-o", dir.File("m")});
    EXPECT_EQ(done.status, 0) << done.err;
  }
}

// The number behind `text` in `where`.
double NumberAfter(const std::string& where, const std::string& text) {
  const size_t at = where.find(text);
  EXPECT_NE(at, std::string::npos) << where;
  return at == std::string::npos ? 0
                                 : std::stod(where.substr(at + text.size()));
}

std::vector<std::string> Search(const std::string& out,
                                const std::vector<std::string>& flags) {
  std::vector<std::string> args = {
      "recipe", "search", Model(),          "-q",          "--recipe", "16a4w",
      "-o",     out,      "--calib-tokens", "1,2,3,4,5,6", "--points", "2"};
  args.insert(args.end(), flags.begin(), flags.end());
  return args;
}

// The least budget that a refusal names can be had, and is kept.
TEST(RecipeSearch, KeepsItsBudget) {
  const TempDir dir;
  const std::string out = dir.File("r.json");
  const Outcome refused = RunHexllm(Search(out, {"--budget-mb", "0.0001"}));
  ExpectError(refused, 2, "--budget-mb: expected at least ");
  EXPECT_EQ(dir.CountFiles(), 0u);
  const double least = NumberAfter(refused.err, "at least ");
  const std::string budget = std::to_string(least + 0.02);
  const Outcome found = RunHexllm(
      Search(out, {"--budget-mb", budget, "--svg", dir.File("front.svg"),
                   "--csv", dir.File("layers.csv")}));
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("\n* "));
  const double bytes = NumberAfter(ReadWholeFile(out), "with 16a4w: ");
  EXPECT_LE(bytes, (least + 0.02) * 1e6);
  EXPECT_GE(bytes, (least - 0.0001) * 1e6);
  const Outcome valid =
      RunHexllm({"recipe", "validate", out, "--model", Model()});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(ReadWholeFile(dir.File("front.svg")),
              AllOf(StartsWith("<svg xmlns="), HasSubstr(">measured<"),
                    HasSubstr(">down_proj<")));
  EXPECT_THAT(ReadWholeFile(dir.File("layers.csv")),
              HasSubstr("\nmodel.layers.0.mlp.down_proj,16a4w,"));
}

TEST(RecipeSearch, RefusesFlagsThatDoNothing) {
  const TempDir dir;
  const std::string out = dir.File("r.json");
  const auto refused = [&](const std::vector<std::string>& flags, int status,
                           const std::string& message) {
    ExpectError(RunHexllm(Search(out, flags)), status, message);
  };
  refused({}, 2, "expected --budget-mb or --budget-ms, found none");
  refused({"--budget-mb", "1", "--budget-ms", "1"}, 2, "found both");
  for (const char* number : {"0", "-1", "nan", "inf"})
    refused({"--budget-mb", number}, 2, "--budget-mb: expected a number above");
  refused({"--budget-mb", "9", "--max-context-len", "64"}, 2,
          "--max-context-len: expected with --budget-ms");
  refused({"--budget-mb", "9", "--svg", out}, 2, "--svg: expected another");
  refused({"--budget-ms", "1", "--qnn-lib-dir", "/nowhere"}, 5, "/nowhere");
  refused({"--budget-mb", "9", "--text", "/nowhere/t"}, 5, "/nowhere/t");
  ExpectError(RunHexllm(Search("recipe.txt", {"--budget-mb", "9"})), 2,
              "--output: expected a name that ends in .json");
  const TempDir texts;
  refused({"--budget-mb", "9", "--text", texts.Write("t", "a\xff")}, 3,
          "/t: expected text in UTF-8, found the byte 0xff at offset 1");
  refused({"--budget-mb", "9", "--text", texts.Write("t", "")}, 3,
          "/t: expected two tokens or more to judge recipes on, found ");
  EXPECT_EQ(
      RunHexllm(Search(out, {"--budget-mb", "9", "--points", "1"})).status, 2);
  EXPECT_EQ(dir.CountFiles(), 0u);
}

// Recipes that the program takes, beside a table that begins with the layer
// that hurts most.
TEST(RecipeSuggestion, WritesTableAndRecipesBesideTheArtifact) {
  const TempDir dir;
  const auto file_of = [&](const std::string& name) {
    return "smollm2_135m_suggested_" + name + ".json";
  };
  for (const char* name : {"equal", "larger"}) {
    dir.Write(file_of(name), R"({"description": "Suggested by `hexllm compile )"
                             R"(--quant-recipe-suggestion`, from x."})");
  }
  dir.Write(file_of("smaller"), "not of an earlier run");
  const std::vector<std::string> args =
      Compile(dir.File("m.hxl"), {"--recipe", "16a4w", "--calib-tokens",
                                  "1,2,3,4,5,6", "--quant-recipe-suggestion"});
  const Outcome done = RunHexllm(args);
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("\n  equal "), HasSubstr("most sensitive: ")));
  const std::string csv =
      ReadWholeFile(dir.File("smollm2_135m_quantization_error.csv"));
  const std::string first = csv.substr(csv.find('\n') + 1);
  EXPECT_THAT(
      done.out,
      HasSubstr("most sensitive: " + first.substr(0, first.find(',')) + " ("));
  size_t recipes = 0, others = 0;
  for (const char* name : {"smaller", "equal", "larger"}) {
    const std::string file = dir.File(file_of(name));
    if (!std::filesystem::exists(file)) continue;
    if (ReadWholeFile(file) == "not of an earlier run") {
      ++others;
      continue;
    }
    const Outcome valid =
        RunHexllm({"recipe", "validate", file, "--model", Model()});
    EXPECT_EQ(valid.status, 0) << valid.err;
    ++recipes;
  }
  EXPECT_GT(recipes, 0u) << done.out;
  EXPECT_EQ(dir.CountFiles(), 2 + recipes + others);
  EXPECT_TRUE(std::filesystem::exists(dir.File(file_of("smaller"))));
}

// Before anything is measured.
TEST(RecipeSuggestion, WritesOverNothingElse) {
  const TempDir dir;
  const std::string equal =
      dir.Write("smollm2_135m_suggested_equal.json",
                RunHexllm({"recipe", "show", "16a8w"}).out);
  const auto refused = [&](const std::string& out,
                           std::vector<std::string> flags,
                           const std::string& message) {
    flags.push_back("--quant-recipe-suggestion");
    ExpectError(RunHexllm(Compile(out, flags)), 2, message);
  };
  const std::string out = dir.File("m.hxl");
  refused(out, {"--recipe", equal}, "give the input another name");
  refused(out, {"--recipe", "16a8w", "--quant-attrs", equal},
          "--quant-recipe-suggestion: expected another file");
  refused(equal, {"--recipe", "16a8w"},
          "--quant-recipe-suggestion: expected another file");
  refused("/dev/null", {"--recipe", "16a8w"}, "which is no file");
  EXPECT_EQ(dir.CountFiles(), 1u);
}

TEST(RecipeSuggestion, NeedsStaticRanges) {
  const TempDir dir;
  for (const char* recipe : {"fp16", "cpu-w8a8"}) {
    const Outcome refused = RunHexllm(Compile(
        dir.File("m.hxl"), {"--recipe", recipe, "--quant-recipe-suggestion"}));
    ExpectError(refused, 2, "static ranges");
  }
  EXPECT_EQ(dir.CountFiles(), 0u);
}

TEST(RecipeCommand, UsageErrors) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"recipe"},
        {"recipe", "show"},
        {"recipe", "validate", "16a8w", "--set", "a=1"},
        {"recipe", "print"}})
    EXPECT_EQ(RunHexllm(args).status, 2);
}

}  // namespace
}  // namespace hexllm::testing
