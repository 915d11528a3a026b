// Runs the hexllm program as a user would and keeps what it printed.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace hexllm::testing {

struct Outcome {
  int status = -1;  // exit status; -1 when the program was killed
  std::string out;
  std::string err;
};

inline std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// `before` is shell text in front of the program: "ulimit -f 1; "; `after`
// comes last: " 2>&-" closes stderr.
inline Outcome RunHexllm(const std::vector<std::string>& args,
                         const std::string& before = "",
                         const std::string& after = "") {
  const TempDir dir;
  std::string command = before + ShellQuoted(HEXLLM_BINARY);
  for (const std::string& arg : args) command += " " + ShellQuoted(arg);
  command += " >" + ShellQuoted(dir.File("out")) + " 2>" +
             ShellQuoted(dir.File("err")) + " </dev/null" + after;
  const int raw = std::system(command.c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1,
          ReadWholeFile(dir.File("out")), ReadWholeFile(dir.File("err"))};
}

}  // namespace hexllm::testing
