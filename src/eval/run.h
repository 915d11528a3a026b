// Runs the items of a task on a session. Used by cli/.
#pragma once

#include <string>
#include <vector>

#include "base/digest.h"
#include "base/progress.h"
#include "base/status.h"
#include "eval/journal.h"
#include "eval/results.h"
#include "eval/task.h"
#include "runtime/session.h"

namespace hexllm {

// Of what all items run and are scored by, in hexadecimal digits.
std::string DigestOfItems(const Task& task);

struct RunOptions {
  Shard shard = {};
  Journal* journal = nullptr;  // null: nothing is kept
  std::string stage;           // names the items in the journal, and progress
  // Of the artifact that runs: the journal's items are of no other one.
  Digest identity = {};
};

// The shard's items, in order, none where the task has fewer items than there
// are shards; those that the journal has are not run again. kUsage when the
// session's context is shorter than the task's window, and for a journal's item
// of other tokens or another artifact; kBadInput with item and position for
// logits that are no numbers; errors of the session and of the journal.
Result<std::vector<ItemResult>> RunTask(Session& session, const Task& task,
                                        const RunOptions& options,
                                        ProgressSink& progress);

}  // namespace hexllm
