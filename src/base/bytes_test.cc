#include "base/bytes.h"

#include <gtest/gtest.h>

namespace hexllm {
namespace {

TEST(CheckedArithmetic, GivesNothingOnOverflow) {
  EXPECT_EQ(CheckedMul(1ull << 32, (1ull << 32) - 1),
            std::optional<uint64_t>(((1ull << 32) - 1) << 32));
  EXPECT_EQ(CheckedMul(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(CheckedAdd(UINT64_MAX - 1, 1), std::optional(UINT64_MAX));
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(CheckedAlignUp(0, 32), std::optional<uint64_t>(0));
  EXPECT_EQ(CheckedAlignUp(1, 32), std::optional<uint64_t>(32));
  EXPECT_EQ(CheckedAlignUp(32, 32), std::optional<uint64_t>(32));
  EXPECT_EQ(CheckedAlignUp(UINT64_MAX - 30, 32), std::nullopt);
}

TEST(Slice, GivesNothingOutside) {
  const ByteSpan data = AsBytes("0123456789");
  EXPECT_EQ(AsText(*Slice(data, 2, 3)), "234");
  EXPECT_EQ(AsText(*Slice(data, 0, 10)), "0123456789");
  EXPECT_TRUE(Slice(data, 10, 0)->empty());
  EXPECT_EQ(Slice(data, 11, 0), std::nullopt);
  EXPECT_EQ(Slice(data, 5, 6), std::nullopt);
  EXPECT_EQ(Slice(data, UINT64_MAX, 2), std::nullopt);
  EXPECT_EQ(Slice(data, 2, UINT64_MAX), std::nullopt);
}

TEST(ByteReader, ReadsWhatByteWriterWrote) {
  ByteWriter writer;
  writer.Write<uint8_t>(7);
  writer.Write<int32_t>(-5);
  writer.Write<uint64_t>(UINT64_MAX);
  writer.Write<double>(0.1);
  writer.WriteString("text");
  writer.WriteBytes(AsBytes("tail"));
  const std::string bytes = std::move(writer).Take();
  ByteReader reader(AsBytes(bytes));
  EXPECT_EQ(*reader.Read<uint8_t>(), 7);
  EXPECT_EQ(*reader.Read<int32_t>(), -5);
  EXPECT_EQ(*reader.Read<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(*reader.Read<double>(), 0.1);
  EXPECT_EQ(*reader.ReadString(), "text");
  EXPECT_EQ(AsText(*reader.ReadBytes(4)), "tail");
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(ByteWriter, IsLittleEndian) {
  ByteWriter writer;
  writer.Write<uint32_t>(0x04030201);
  EXPECT_EQ(std::move(writer).Take(), "\x01\x02\x03\x04");
}

TEST(ByteReader, StaysWhereItWasAfterAFailure) {
  ByteReader reader(AsBytes("abc"));
  ASSERT_TRUE(reader.Read<uint8_t>().ok());
  const auto number = reader.Read<uint32_t>();
  ASSERT_FALSE(number.ok());
  EXPECT_EQ(number.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(number.error().message,
            "data ends early: expected 4 more bytes at offset 1, found 2");
  EXPECT_FALSE(reader.ReadBytes(3).ok());
  EXPECT_FALSE(reader.ReadBytes(UINT64_MAX).ok());
  EXPECT_EQ(reader.offset(), 1u);
  EXPECT_EQ(AsText(*reader.ReadBytes(2)), "bc");
}

TEST(ByteReader, TakesBackTheLengthOfATruncatedString) {
  ByteWriter writer;
  writer.Write<uint64_t>(5);
  writer.WriteBytes(AsBytes("1234"));
  const std::string bytes = std::move(writer).Take();
  ByteReader reader(AsBytes(bytes));
  EXPECT_FALSE(reader.ReadString().ok());
  EXPECT_EQ(reader.offset(), 0u);
  EXPECT_EQ(*reader.Read<uint64_t>(), 5u);
}

}  // namespace
}  // namespace hexllm
