// How long work reports where it is. Compile, evaluation and downloads call it;
// only cli/ and serve/ implement it.
#pragma once

#include <cstdint>
#include <string_view>

namespace hexllm {

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // Starts a step of `total` units ("layers", "tokens", "MB"); `total` 0 =
  // unknown. Ends the step before it.
  virtual void Begin(std::string_view step, std::string_view unit,
                     int64_t total) = 0;
  // `done` units of the current step are finished. Cheap; may be called often.
  virtual void Update(int64_t done) = 0;
  // A named warning for the user (one line).
  virtual void Warn(std::string_view message) = 0;
  // A decision made for the user that the user may want to know (one line).
  virtual void Note(std::string_view message) = 0;
};

// Reports nothing: the default of every library entry point.
class NullProgress final : public ProgressSink {
 public:
  void Begin(std::string_view, std::string_view, int64_t) override {}
  void Update(int64_t) override {}
  void Warn(std::string_view) override {}
  void Note(std::string_view) override {}
};

}  // namespace hexllm
