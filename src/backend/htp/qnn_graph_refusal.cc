// Which node of a graph the vendor's compiler gives up on: it does not say so
// itself.
#include <map>
#include <set>
#include <utility>

#include "backend/htp/qnn_graph.h"
#include "base/check.h"

namespace hexllm::htp {
namespace {

// Nodes of one kind compile or do not, whatever their names and numbers.
std::string KindOf(const QnnGraph& graph, const NodeSpec& node) {
  std::string kind = node.op;
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const TensorId id : *list) {
      TensorSpec spec = graph.tensor(id);
      spec.name.clear();
      if (spec.encoding && spec.encoding->axis < 0) spec.encoding->scales = {1};
      kind += "|" + DescribeTensor(spec);
    }
  }
  return kind;
}

// The tensor as that of a graph of one node.
TensorSpec AloneAs(TensorUse use, TensorSpec spec) {
  if (spec.use != TensorUse::kStatic) spec.use = use;
  return spec;
}

// The tensors of one node in a graph of its own.
class Copies {
 public:
  explicit Copies(QnnGraph& to) : to_(to) {}

  Result<std::vector<TensorId>> Make(const QnnGraph& from,
                                     const std::vector<TensorId>& ids,
                                     TensorUse use) {
    std::vector<TensorId> made;
    for (const TensorId id : ids) {
      if (const auto found = made_.find(id.index); found != made_.end()) {
        made.push_back(found->second);
        continue;
      }
      HX_ASSIGN_OR_RETURN(const TensorId copy,
                          Add(AloneAs(use, from.tensor(id))));
      made_[id.index] = copy;
      made.push_back(copy);
    }
    return made;
  }

 private:
  // The library has the numbers of constants; any will do here.
  Result<TensorId> Add(TensorSpec spec) {
    if (spec.use != TensorUse::kStatic) return to_.AddTensor(std::move(spec));
    const auto bytes = StorageBytes(spec.dtype, spec.shape);
    HX_CHECK(bytes.has_value());
    const std::vector<std::byte> data(*bytes, std::byte{1});
    return to_.AddStatic(std::move(spec), data);
  }

  QnnGraph& to_;
  std::map<uint32_t, TensorId> made_;
};

}  // namespace

bool QnnGraph::CompilesAlone(const NodeSpec& node) const {
  const auto run = [&]() -> Status {
    HX_ASSIGN_OR_RETURN(auto context,
                        QnnContext::Create(std::shared_ptr<const QnnSession>(
                                               context_, &context_->session()),
                                           WeightSharing::kOff));
    HX_ASSIGN_OR_RETURN(const auto graph,
                        Create(std::move(context), name_, {}));
    Copies copies(*graph);
    NodeSpec alone = node;
    HX_ASSIGN_OR_RETURN(alone.inputs,
                        copies.Make(*this, node.inputs, TensorUse::kInput));
    HX_ASSIGN_OR_RETURN(alone.outputs,
                        copies.Make(*this, node.outputs, TensorUse::kOutput));
    HX_RETURN_IF_ERROR(graph->AddNode(alone));
    return graph->Compile();
  };
  return run().ok();
}

std::string QnnGraph::FindRefused() const {
  std::set<std::string> seen;
  for (const NodeSpec& node : nodes_) {
    if (!seen.insert(KindOf(*this, node)).second) continue;
    if (!CompilesAlone(node)) return DescribeNode(node);
  }
  return "each of its nodes compiles alone";
}

}  // namespace hexllm::htp
