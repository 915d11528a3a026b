#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

namespace hexllm {
namespace {

// Ownership moves through a result; nothing is copied behind the caller's back.
static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_nothrow_move_constructible_v<Result<std::string>>);

Status Fails() { return Error{ErrorCode::kBadInput, "bad"}; }
Result<int> Half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::kUsage, "odd"};
  return n / 2;
}

Status Stops(int& steps) {
  ++steps;
  HX_RETURN_IF_ERROR(OkStatus());
  ++steps;
  HX_RETURN_IF_ERROR(Fails());
  ++steps;
  return OkStatus();
}

Result<int> Quarter(int n) {
  HX_ASSIGN_OR_RETURN(const int half, Half(n));
  HX_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, IsOkUnlessMadeFromAnError) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(OkStatus().ok());
  const Status failed = Fails();
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(failed.error().message, "bad");
}

TEST(Error, GathersContextOnTheWayUp) {
  const Error error = Fails().error();
  const Error outer = Error(error).With("tensor").With("file");
  EXPECT_EQ(outer.message, "file: tensor: bad");
  EXPECT_EQ(outer.code, ErrorCode::kBadInput);
}

// The command line exits with these numbers.
TEST(ErrorCode, HasTheDocumentedExitStatus) {
  EXPECT_EQ(static_cast<int>(ErrorCode::kUsage), 2);
  EXPECT_EQ(static_cast<int>(ErrorCode::kBadInput), 3);
  EXPECT_EQ(static_cast<int>(ErrorCode::kUnsupported), 4);
  EXPECT_EQ(static_cast<int>(ErrorCode::kEnvironment), 5);
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = Half(4);
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, 2);
  EXPECT_TRUE(good.status().ok());
  const Result<int> bad = Half(3);
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "odd");
  EXPECT_EQ(bad.status().error().message, "odd");
  EXPECT_EQ(Result<std::string>("text")->size(), 4u);
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> owned = *std::move(result);
  EXPECT_EQ(*owned, 7);
}

TEST(Macros, ReturnTheFirstError) {
  int steps = 0;
  EXPECT_EQ(Stops(steps).error().message, "bad");
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().code, ErrorCode::kUsage);
  EXPECT_FALSE(Quarter(1).ok());
}

TEST(Check, EndsTheProcessWithStatus70) {
  const auto exits = ::testing::ExitedWithCode(70);
  EXPECT_EXIT((void)Half(3).value(), exits, "internal error at .*status.h");
  EXPECT_EXIT((void)Half(2).error(), exits, "internal error");
  EXPECT_EXIT((void)OkStatus().error(), exits, "internal error");
  EXPECT_EXIT(HX_CHECK(1 + 1 == 3), exits, "1 \\+ 1 == 3");
  HX_CHECK(1 + 1 == 2);
}

}  // namespace
}  // namespace hexllm
