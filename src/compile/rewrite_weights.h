// A model with other numbers in its weights, which are written one by one into
// a temporary file. Used by compile/rotate and compile/smooth. Not where the
// numbers come from.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/scratch_file.h"
#include "base/status.h"
#include "ir/graph.h"
#include "models/model_source.h"

namespace hexllm {

// What becomes of one tensor, a matrix [N,K] or a vector [K].
struct TensorRewrite {
  // Changes rows [n,K] of it, from row `first` on; a vector is one row. Empty:
  // the tensor stays as it is stored.
  std::function<void(std::span<float> rows, int64_t first)> apply = {};
  int64_t rows_at_once = 64;  // n, but for fewer at the end
  DType dtype = DType::kF32;  // of what is written, unless it stays
};

class WeightRewriter {
 public:
  // `what` is what messages call the file. `source` outlives this. kBadInput
  // for damaged weights, kEnvironment where no file can be made.
  static Result<WeightRewriter> Create(const models::ModelSource& source,
                                       std::string what);

  // The model's weights under Hugging Face's names.
  const std::map<std::string, const ir::Constant*>& constants() const {
    return constants_;
  }
  // Each name once. kEnvironment when there is no room.
  Status Write(const std::string& name, const ir::Constant& constant,
               const TensorRewrite& rewrite);
  // The model of what was written, which must be all of it. Its checkpoint has
  // no side files or metadata.
  Result<models::ModelSource> Finish();

 private:
  struct Written {
    std::string name;
    ir::TensorType type;
    uint64_t offset;
  };
  WeightRewriter(const models::ModelSource& source, ir::Module module,
                 ScratchFile file);
  Status WriteRows(const ir::Constant& constant, const TensorRewrite& rewrite);
  Status WriteValues(std::span<const float> values);
  void ReleaseSource() const;

  const models::ModelSource& source_;
  ir::Module module_;
  std::map<std::string, const ir::Constant*> constants_;
  ScratchFile file_;
  std::vector<Written> written_;
};

}  // namespace hexllm
