// Error, Status and Result<T>: how every function of hexllm that can fail on
// input or environment says so. Used everywhere. Not for bugs of ours: those
// are HX_CHECK (base/check.h). No exception crosses a function of ours.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace hexllm {

// Each code says when to choose it and not its neighbour. The command line maps
// a code to its exit status (the number behind it).
enum class ErrorCode {
  kUsage = 2,  // the caller's request makes no sense: a flag, an option, an id
               // out of range
  kBadInput =
      3,  // a file or message is damaged, inconsistent or lacks something
  kUnsupported = 4,  // well-formed, but hexllm (or this backend) cannot do it
  kEnvironment = 5,  // the machine says no: file missing, disk full, no memory,
                     // device or library failure
};

// What went wrong, as one line for the user: where, expected, found, what to
// do.
struct Error {
  ErrorCode code;
  std::string message;

  // Returns this error with `context + ": "` put before the message. For
  // context added on the way up.
  Error With(const std::string& context) && {
    message = context + ": " + message;
    return std::move(*this);
  }
};

// Success, or an Error. Thread-compatible; moves are cheap.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // Implicit, so that `return Error{...};` works.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Status(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  const Error& error() const& {
    HX_CHECK(!ok_);
    return error_;
  }
  Error&& error() && {
    HX_CHECK(!ok_);
    return std::move(error_);
  }

 private:
  Error error_{};
  bool ok_ = true;
};

inline Status OkStatus() { return {}; }

// A value, or an Error. Reading the value of a failed result is a bug of ours
// and stops the process.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that `return value;` and `return Error{...};` work.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() & {
    HX_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    HX_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    HX_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  const Error& error() const& {
    HX_CHECK(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    HX_CHECK(!ok());
    return std::get<1>(std::move(state_));
  }
  Status status() const { return ok() ? Status() : Status(error()); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace hexllm

#define HX_CONCAT_INNER(a, b) a##b
#define HX_CONCAT(a, b) HX_CONCAT_INNER(a, b)

// The only two control-flow macros of the project.
#define HX_RETURN_IF_ERROR(expr)                              \
  do {                                                        \
    auto hx_status = (expr);                                  \
    if (!hx_status.ok()) return std::move(hx_status).error(); \
  } while (false)

#define HX_ASSIGN_OR_RETURN(decl, expr) \
  HX_ASSIGN_OR_RETURN_IMPL(HX_CONCAT(hx_result_, __LINE__), decl, expr)
#define HX_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return std::move(tmp).error();   \
  decl = std::move(tmp).value()
