#include "eval/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/mapped_file.h"
#include "eval/result_json.h"

namespace hexllm {
namespace {

std::string KeyOf(const std::string& task, const std::string& stage,
                  uint64_t index) {
  return fmt::format("{}\n{}\n{}", task, stage, index);
}

Error Failed(const std::string& path, const char* what) {
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

}  // namespace

void Journal::CloseFile::operator()(int* fd) const {
  ::close(*fd);
  delete fd;
}

namespace {

// "window: expected 512, found 100".
std::string FirstDifference(const Json& wanted, const Json& found) {
  for (const auto& [key, value] : wanted.items()) {
    const Json* other = FindMember(found, key);
    if (other != nullptr && *other == value) continue;
    return fmt::format("{}: expected {}, found {}", key, DumpJson(value),
                       other == nullptr ? "none" : DumpJson(*other));
  }
  return fmt::format("expected {}, found {}", DumpJson(wanted),
                     DumpJson(found));
}

}  // namespace

Status Journal::ReadLines(std::string_view text, const Json& run) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    auto json = ParseJson(text.substr(at, end - at));
    const std::string where = fmt::format("{}: line {}", path_, ++number);
    if (!json.ok()) return std::move(json).error().With(where);
    at = end + 1;
    if (number == 1) {
      if (*json == run) continue;
      return Error{ErrorCode::kUsage,
                   fmt::format("--resume {}: expected a file of the same run, "
                               "{}; choose another file",
                               path_, FirstDifference(run, *json))};
    }
    const auto task = GetString(*json, "task");
    const auto stage = GetString(*json, "stage");
    const auto item = GetInt(*json, "item");
    for (const Status& status :
         {task.status(), stage.status(), item.status()}) {
      if (!status.ok()) return Error(status.error()).With(where);
    }
    items_[KeyOf(*task, *stage, static_cast<uint64_t>(*item))] =
        std::move(*json);
  }
  return OkStatus();
}

Result<Journal> Journal::Open(const std::string& path, const Json& run) {
  Journal journal(path);
  const int fd =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return Failed(path, "open");
  journal.fd_.reset(new int(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--resume {}: another process writes it; each "
                             "needs a file of its own",
                             path)};
  }
  size_t whole = 0;
  {
    HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Map(fd, path));
    const std::string_view text = AsText(file.bytes());
    const size_t last = text.rfind('\n');
    whole = last == std::string_view::npos ? 0 : last + 1;
    HX_RETURN_IF_ERROR(journal.ReadLines(text.substr(0, whole), run));
    // A file that is none of ours is not to be emptied.
    if (whole == 0 && !text.empty() && !DumpJson(run).starts_with(text)) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: expected JSON lines of an evaluation, found "
                      "another file",
                      path)};
    }
  }
  if (::ftruncate(fd, static_cast<off_t>(whole)) != 0)
    return Failed(path, "truncate");
  if (whole == 0) HX_RETURN_IF_ERROR(journal.Append(run));
  return journal;
}

const Json* Journal::Find(const std::string& task, const std::string& stage,
                          uint64_t index) const {
  const auto found = items_.find(KeyOf(task, stage, index));
  return found == items_.end() ? nullptr : &found->second;
}

Status Journal::Add(const std::string& task, const std::string& stage,
                    const std::string& digest, const ItemResult& item) {
  Json line = {{"task", task}, {"stage", stage}, {"digest", digest}};
  line.update(ItemToJson(item));
  return Append(line);
}

Status Journal::Append(const Json& line) {
  const std::string text = DumpJson(line) + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(*fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed(path_, "write");
    done += static_cast<size_t>(n);
  }
  return OkStatus();
}

}  // namespace hexllm
