#include "backend/htp/trace_merge.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "backend/htp/trace_walker.h"
#include "base/mapped_file.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr std::string_view kProcessName = "process_name";

// Copies the events of one schedule, with another process and unit of time.
class EventCopier final : public TraceWalker {
 public:
  struct Target {
    OutputFile& file;
    int process;
    double core_mhz;
  };
  explicit EventCopier(Target target) : target_(target) {}

  // What is left, and the first error of the file.
  Status Flush() {
    if (status_.ok()) status_ = target_.file.Write(AsBytes(text_));
    text_.clear();
    return status_;
  }

 private:
  void OnNumber(double value) override {
    if (IsProcess()) return;
    if (InEvent(0) && (Key() == "ts" || Key() == "dur"))
      value /= target_.core_mhz;
    if (BeginValue()) fmt::format_to(std::back_inserter(text_), "{}", value);
  }
  void OnText(const std::string& value) override {
    if (InEvent(0) && Key() == "name") dropped_ = value == kProcessName;
    if (!IsProcess() && BeginValue()) text_ += DumpJson(value);
  }
  void OnLiteral(std::string_view value) override {
    if (BeginValue()) text_ += value;
  }
  void OnOpen(char bracket) override;
  void OnClose(char bracket) override;

  // Every event begins with its own.
  bool IsProcess() const { return InEvent(0) && Key() == "pid"; }
  // Writes the comma and the key before a value; false outside of events.
  bool BeginValue();

  Target target_;
  std::string text_;
  Status status_;
  std::string open_;      // the brackets that are open in the event at hand
  bool first_ = true;     // nothing stands in the innermost of them yet
  size_t begin_ = 0;      // of the event at hand, in text_
  bool dropped_ = false;  // it names the process, which has a name already
};

bool EventCopier::BeginValue() {
  if (open_.empty()) return false;
  if (!first_) text_ += ',';
  first_ = false;
  if (open_.back() == '{') text_ += DumpJson(Key()) + ":";
  return true;
}

void EventCopier::OnOpen(char bracket) {
  if (AtEvent() && bracket == '{') {
    begin_ = text_.size();
    dropped_ = false;
    fmt::format_to(std::back_inserter(text_), ",\n{{\"pid\":{}",
                   target_.process);
    open_ = bracket;
    first_ = false;
    return;
  }
  if (!BeginValue()) return;
  text_ += bracket;
  open_ += bracket;
  first_ = true;
}

void EventCopier::OnClose(char bracket) {
  if (open_.empty()) return;
  text_ += bracket;
  open_.pop_back();
  first_ = false;
  if (open_.empty() && dropped_) text_.resize(begin_);
  if (open_.empty() && text_.size() >= kBufferBytes) (void)Flush();
}

}  // namespace

Result<TraceMerger> TraceMerger::Create(const std::string& path) {
  HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  HX_RETURN_IF_ERROR(
      file.Write(AsBytes("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")));
  return TraceMerger(std::move(file));
}

Status TraceMerger::Add(const Schedule& schedule) {
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(schedule.path));
  ++processes_;
  const Json name = {{"name", kProcessName},
                     {"ph", "M"},
                     {"pid", processes_},
                     {"args", {{"name", schedule.title}}}};
  HX_RETURN_IF_ERROR(
      file_.Write(AsBytes((processes_ > 1 ? ",\n" : "") + DumpJson(name))));
  EventCopier copier({file_, processes_, schedule.core_mhz});
  Status walked = copier.Walk(AsText(file.bytes()));
  if (!walked.ok())
    return std::move(walked).error().With(Printable(schedule.path));
  return copier.Flush();
}

Status TraceMerger::Finish() {
  HX_RETURN_IF_ERROR(file_.Write(AsBytes("\n]}\n")));
  return file_.Commit();
}

}  // namespace hexllm::htp
