#include "compile/weight_tools.h"

#include <memory>
#include <new>

#include "backend/cpu/engine_memory.h"
#include "backend/cpu/kernels/kernels.h"
#include "base/dtype.h"

namespace hexllm {
namespace {

void Multiply(const quant::ProductArgs& p) {
  static_assert(sizeof(float) == 4);
  const auto floats = static_cast<size_t>(cpu::MatMulScratchFloats(p.k));
  constexpr std::align_val_t kAlignment{64};
  const auto release = [&](float* at) { ::operator delete[](at, kAlignment); };
  const std::unique_ptr<float[], decltype(release)> scratch(
      new (kAlignment) float[floats], release);
  constexpr auto kType = static_cast<size_t>(DType::kF32);
  cpu::BestKernels().matmul[kType](
      {.x = p.a,
       .x_stride = p.a_stride,
       .w = reinterpret_cast<const std::byte*>(p.b),
       .w_row_bytes = p.b_stride * static_cast<int64_t>(sizeof(float)),
       .bias = nullptr,
       .residual = nullptr,
       .out = p.out,
       .out_stride = p.out_stride,
       .rows = p.m,
       .k = p.k,
       .n_begin = 0,
       .n_end = p.n,
       .scratch = scratch.get()});
}

}  // namespace

WeightTools::WeightTools(const ir::Module& module,
                         const std::set<std::string>& layers,
                         const TappedRun& run, const Checkpoint& checkpoint,
                         const FileCache* cache)
    : pool_(run.threads > 0 ? run.threads : cpu::PhysicalCores()),
      inputs_(module, layers, run, cache, Multiply, pool_),
      context_{.inputs = inputs_,
               .product = Multiply,
               .pool = pool_,
               .progress = run.progress,
               .cache = cache,
               .release = [&checkpoint] {
                 for (const TensorView& tensor : checkpoint.tensors())
                   checkpoint.DropPages(tensor);
               }} {}

}  // namespace hexllm
