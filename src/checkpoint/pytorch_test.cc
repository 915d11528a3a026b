#include "checkpoint/pytorch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pytorch_builder.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PytorchBuilder;
using testing::PytorchFrom;
using testing::ZipBuilder;
namespace pickle = testing::pickle;

const std::string kBytes = "0123456789abcdef01234567";  // 6 f32

// The error for a file, which must be one line of the given kind.
std::string ErrorOf(const std::string& file,
                    ErrorCode code = ErrorCode::kBadInput) {
  const auto parsed = ParsePytorch(AsBytes(file));
  if (parsed.ok()) return "no error";
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

// A checkpoint of one value, which `ops` leave on the stack.
std::string File(const std::string& ops) {
  return PytorchFrom(pickle::kStart + ops + pickle::kStop, {kBytes});
}

std::string OneTensor(const pickle::Tensor& tensor) {
  return File(pickle::Dict(pickle::Text("w") + pickle::Of(tensor)));
}

TEST(ParsePytorch, GivesSortedViewsOfAStateDict) {
  const std::string file =
      PytorchBuilder().Add("w", {2, 3}, kBytes).Add("b", {1}, "1234").Build();
  const auto parsed = ParsePytorch(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 2u);
  const TensorView& w = parsed->tensors[1];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.dtype, DType::kF32);
  EXPECT_THAT(w.shape, ElementsAre(2, 3));
  EXPECT_EQ(AsText(w.data), kBytes);
  // No copy.
  EXPECT_GE(AsText(w.data).data(), file.data());
  EXPECT_LE(AsText(w.data).data() + kBytes.size(), file.data() + file.size());
}

TEST(ParsePytorch, KnowsTheElementTypes) {
  const std::pair<const char*, DType> types[] = {
      {"FloatStorage", DType::kF32}, {"DoubleStorage", DType::kF64},
      {"HalfStorage", DType::kF16},  {"BFloat16Storage", DType::kBF16},
      {"CharStorage", DType::kI8},   {"ByteStorage", DType::kU8},
      {"BoolStorage", DType::kBool}, {"LongStorage", DType::kI64}};
  for (const auto& [name, dtype] : types) {
    const std::string file = OneTensor({.type = name,
                                        .elements = 3,
                                        .offset = 1,
                                        .shape = {2},
                                        .strides = {1}});
    const auto parsed = ParsePytorch(AsBytes(file));
    ASSERT_TRUE(parsed.ok()) << name << ": " << parsed.error().message;
    EXPECT_EQ(parsed->tensors[0].dtype, dtype);
    const size_t bytes = *StorageBytes(dtype, {1});
    EXPECT_EQ(AsText(parsed->tensors[0].data), kBytes.substr(bytes, 2 * bytes));
  }
}

TEST(ParsePytorch, TakesTheModelOutOfATrainingCheckpoint) {
  const std::string tensor =
      pickle::Of({.elements = 6, .shape = {6}, .strides = {1}});
  // The two names share a storage.
  const std::string file = File(
      pickle::Dict(pickle::Text("model") +
                   pickle::Dict(pickle::Text("_orig_mod.w") + tensor +
                                pickle::Text("_orig_mod.same") + tensor) +
                   pickle::Text("model_args") +
                   pickle::Dict(pickle::Text("dim") + pickle::Int(288) +
                                pickle::Text("n_kv_heads") + pickle::kNone) +
                   pickle::Text("iter_num") + pickle::Int(5)));
  const auto parsed = ParsePytorch(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 2u);
  EXPECT_EQ(parsed->tensors[0].name, "same");
  EXPECT_EQ(parsed->tensors[1].name, "w");
  EXPECT_EQ(parsed->tensors[0].data.data(), parsed->tensors[1].data.data());
  EXPECT_EQ(parsed->metadata.at("model_args"),
            R"({"dim":288,"n_kv_heads":null})");
}

TEST(ParsePytorch, ReadsParametersAndTheStateOfADict) {
  const std::string parameter =
      pickle::Global("torch._utils", "_rebuild_parameter") +
      pickle::Tuple(pickle::Of({.elements = 6, .shape = {}, .strides = {}}) +
                    "\x88" + pickle::OrderedDict()) +
      pickle::kReduce;
  const std::string file =
      File(pickle::OrderedDict() + pickle::kMark + pickle::Text("w") +
           parameter + pickle::kSetItems +
           pickle::Dict(pickle::Text("_metadata") + pickle::OrderedDict()) +
           pickle::kBuild);
  const auto parsed = ParsePytorch(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 1u);
  EXPECT_TRUE(parsed->tensors[0].shape.empty());
}

TEST(ParsePytorch, NamesAForeignGlobalAndExecutesNothing) {
  EXPECT_THAT(
      ErrorOf(File(pickle::Global("os", "system") +
                   pickle::Tuple(pickle::Text("true")) + pickle::kReduce),
              ErrorCode::kUnsupported),
      AllOf(HasSubstr("data.pkl"), HasSubstr("'os.system'"),
            HasSubstr("nothing was executed")));
  // The form of protocol 4: names from the stack.
  EXPECT_THAT(
      ErrorOf(File(pickle::Text("builtins") + pickle::Text("eval") + "\x93"),
              ErrorCode::kUnsupported),
      HasSubstr("'builtins.eval'"));
}

TEST(ParsePytorch, RefusesOtherCallsAndObjects) {
  EXPECT_THAT(ErrorOf(File(pickle::Global("torch", "FloatStorage") +
                           pickle::Tuple(pickle::Int(7)) + pickle::kReduce),
                      ErrorCode::kUnsupported),
              AllOf(HasSubstr("'torch.FloatStorage'"),
                    HasSubstr("nothing was executed")));
  EXPECT_THAT(
      ErrorOf(File(pickle::Text("x") + pickle::kEmptyTuple + pickle::kReduce)),
      HasSubstr("a call: expected a name"));
  EXPECT_THAT(
      ErrorOf(File(pickle::Int(1) + pickle::kEmptyDict + pickle::kBuild),
              ErrorCode::kUnsupported),
      HasSubstr("an object with a state"));
  // INST, OBJ, NEWOBJ, EXT1: all make objects.
  for (const char* op : {"i", "o", "\x81", "\x82"}) {
    EXPECT_THAT(ErrorOf(File(pickle::kMark + op), ErrorCode::kUnsupported),
                AllOf(HasSubstr("opcode 0x"), HasSubstr("nothing was")));
  }
}

TEST(ParsePytorch, RefusesWhatIsNoDictOfTensors) {
  EXPECT_THAT(ErrorOf(File(pickle::Int(1)), ErrorCode::kUnsupported),
              HasSubstr("expected a dict of tensors"));
  EXPECT_THAT(
      ErrorOf(File(pickle::Dict(pickle::Text("epoch") + pickle::Int(1))),
              ErrorCode::kUnsupported),
      AllOf(HasSubstr("'epoch'"), HasSubstr("state dict")));
}

TEST(ParsePytorch, RefusesTensorsThatItsStorageDoesNotHold) {
  EXPECT_THAT(
      ErrorOf(OneTensor({.elements = 7, .shape = {7}, .strides = {1}})),
      AllOf(HasSubstr("'w'"), HasSubstr("7 elements of f32, found 24")));
  EXPECT_THAT(ErrorOf(OneTensor({.elements = 6, .shape = {7}, .strides = {1}})),
              HasSubstr("expected 28 bytes"));
  EXPECT_THAT(ErrorOf(OneTensor(
                  {.elements = 6, .offset = 5, .shape = {2}, .strides = {1}})),
              HasSubstr("expected 8 bytes"));
  EXPECT_THAT(ErrorOf(OneTensor(
                  {.elements = 6, .offset = 7, .shape = {1}, .strides = {1}})),
              HasSubstr("found 7"));
  EXPECT_THAT(ErrorOf(OneTensor(
                  {.key = "9", .elements = 6, .shape = {6}, .strides = {1}})),
              HasSubstr("called '9'"));
  EXPECT_THAT(ErrorOf(OneTensor({.elements = 6, .shape = {0}, .strides = {1}})),
              HasSubstr("dimensions of at least 1"));
  EXPECT_THAT(ErrorOf(OneTensor({.elements = 6,
                                 .shape = {INT32_MAX, INT32_MAX, INT32_MAX},
                                 .strides = {1, 1, 1}})),
              HasSubstr("fits 64 bits"));
}

TEST(ParsePytorch, RefusesStridesThatAreNotDense) {
  EXPECT_THAT(
      ErrorOf(OneTensor({.elements = 6, .shape = {2, 3}, .strides = {1, 2}}),
              ErrorCode::kUnsupported),
      HasSubstr("strides [1,2]"));
  // An axis of one element may have any stride.
  EXPECT_TRUE(
      ParsePytorch(AsBytes(OneTensor(
                       {.elements = 6, .shape = {1, 6}, .strides = {99, 1}})))
          .ok());
}

TEST(ParsePytorch, RefusesBigEndianFilesAndOtherArchives) {
  EXPECT_THAT(
      ErrorOf(
          ZipBuilder().Add("a/data.pkl", "").Add("a/byteorder", "big").Build(),
          ErrorCode::kUnsupported),
      HasSubstr("found 'big'"));
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("word/document.xml", "<>").Build()),
              HasSubstr("data.pkl"));
}

TEST(ParsePytorch, EveryTruncatedPickleIsAnError) {
  const std::string data =
      pickle::kStart +
      pickle::Dict(pickle::Text("w") +
                   pickle::Of({.elements = 6, .shape = {6}, .strides = {1}})) +
      pickle::kStop;
  ASSERT_TRUE(ParsePytorch(AsBytes(PytorchFrom(data, {kBytes}))).ok());
  for (size_t size = 0; size < data.size(); ++size) {
    EXPECT_NE(ErrorOf(PytorchFrom(data.substr(0, size), {kBytes})), "no error")
        << size;
  }
  EXPECT_THAT(ErrorOf(PytorchFrom(data + "more", {kBytes})),
              HasSubstr("nothing behind the end"));
}

// One text or value can be used thousands of times with two bytes each.
TEST(ParsePytorch, SmallFilesThatGrowAreRefused) {
  const std::string tensor =
      pickle::Of({.elements = 6, .shape = {6}, .strides = {1}});
  std::string again;
  for (int i = 0; i < 1000; ++i) again.append("h\x00h\x01", 4);
  const auto repeated = [&](size_t bytes) {
    return File("}(" + pickle::Text(std::string(bytes, 'n')) +
                std::string("q\x00", 2) + tensor + std::string("q\x01", 2) +
                again + "u");
  };
  EXPECT_THAT(ErrorOf(repeated(4096)), HasSubstr("once, found twice"));
  EXPECT_THAT(ErrorOf(repeated(4097), ErrorCode::kUnsupported),
              HasSubstr("a name of at most 4096 bytes, found 4097"));
  // Names that are the same without their prefix.
  EXPECT_THAT(ErrorOf(File(pickle::Dict(pickle::Text("w") + tensor +
                                        pickle::Text("_orig_mod.w") + tensor))),
              HasSubstr("tensor 'w': expected once"));
  const auto with_setting = [&](const std::string& settings) {
    return File(pickle::Dict(pickle::Text("model") + pickle::Dict("") +
                             pickle::Text("model_args") +
                             pickle::Dict(settings)));
  };
  EXPECT_THAT(ErrorOf(with_setting(pickle::Text("key") +
                                   pickle::Text(std::string(4097, 'x'))),
                      ErrorCode::kUnsupported),
              AllOf(HasSubstr("setting 'key'"), HasSubstr("4096")));
  std::string settings;
  for (int i = 0; i < 257; ++i)
    settings += pickle::Text(std::to_string(i)) + pickle::kNone;
  EXPECT_THAT(ErrorOf(with_setting(settings), ErrorCode::kUnsupported),
              HasSubstr("at most 256 settings, found 257"));
}

TEST(ParsePytorch, StackMarksAndContainersHaveLimits) {
  const auto error = [](const std::string& ops) {
    return ErrorOf(File(ops), ErrorCode::kUnsupported);
  };
  EXPECT_THAT(error(std::string((1 << 20) + 1, '(')), HasSubstr("marks"));
  EXPECT_THAT(error(std::string((1 << 20) + 1, ')')), HasSubstr("values"));
  std::string gets;
  for (int i = 0; i < 1 << 20; ++i) gets.append("h\x00", 2);
  const std::string one = std::string("Nq\x00", 3);
  EXPECT_THAT(error(one + gets), HasSubstr("on the stack"));
  const std::string half = "(" + gets.substr(gets.size() / 2) + "e";
  EXPECT_THAT(error(one + "]" + half + half), HasSubstr("entries"));
}

TEST(ParsePytorch, ValuesInCirclesAreHarmless) {
  // A dict that holds itself under "model".
  const std::string circle = std::string("}q\x00(", 4) + pickle::Text("model") +
                             std::string("h\x00u", 3);
  EXPECT_THAT(ErrorOf(File(circle), ErrorCode::kUnsupported),
              HasSubstr("'model'"));
}

}  // namespace
}  // namespace hexllm
