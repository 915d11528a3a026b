// See fake_qnn.h. A context binary of it is text: "soc ID", then for each graph
// "graph NAME SPILL_FILL_BYTES" and its tensors, "in|out NAME TYPE RANK DIMS".
// Anything else in a binary, or an unknown handle, is an error, so that what is
// wrong does not pass for a call that happened.
#include "tests/support/fake_qnn.h"

#include <cstdlib>
#include <deque>
#include <memory>
#include <sstream>

#include "backend/htp/qnn_abi.h"
#include "backend/htp/qnn_device_abi.h"

namespace hexllm::testing {
namespace {

namespace abi = htp::abi;

constexpr abi::Result kBadHandle = 8001;
constexpr uint64_t kPage = 4096;

struct FakeGraph {
  std::string name;
  abi::HtpGraphBlob blob = {1, 0, 0, 0};
  std::deque<std::string> names;
  std::deque<std::vector<uint32_t>> dims;
  std::vector<abi::Tensor> inputs, outputs;
};

struct FakeContext {
  std::string handle;
  uint32_t soc = 0;
  std::deque<FakeGraph> graphs;
  std::vector<abi::BinaryGraph> raw;
  abi::BinaryInfo info = {};
};

struct State {
  FakeQnn seen;
  std::map<std::string, uint32_t> made;  // handles by kind
  std::deque<FakeContext> contexts, systems;
  std::map<int, void*> allocations;  // by fd
};

State& state() {
  static State all;
  return all;
}

std::string NewHandle(const char* kind, FakeQnn::Registration what = {}) {
  std::string handle = kind + (" " + std::to_string(++state().made[kind]));
  state().seen.live[handle] = std::move(what);
  return handle;
}

// Handles are the addresses of names that stay.
abi::Handle Raw(const std::string& handle) {
  static std::deque<std::string> names;
  return &names.emplace_back(handle);
}
const std::string& Name(const void* handle) {
  static const std::string none = "null";
  return handle == nullptr ? none : *static_cast<const std::string*>(handle);
}

template <typename... Args>
abi::Result Log(const std::string& call, const Args&... arguments) {
  std::ostringstream line;
  line << call;
  ((line << ' ' << arguments), ...);
  state().seen.calls.push_back(line.str());
  const auto failure = state().seen.failures.find(call);
  return failure == state().seen.failures.end() ? abi::kOk : failure->second;
}

abi::Result Make(const char* call, const char* kind, abi::Handle* out) {
  if (const abi::Result result = Log(call)) return result;
  *out = Raw(NewHandle(kind));
  return abi::kOk;
}
abi::Result Free(const char* call, const void* handle) {
  if (const abi::Result result = Log(call, Name(handle))) return result;
  return state().seen.live.erase(Name(handle)) == 1 ? abi::kOk : kBadHandle;
}

// ---- Context binaries.

bool AddTensor(std::istringstream& line, bool input, FakeGraph& graph) {
  abi::Tensor tensor = {};
  tensor.version = 1;
  uint32_t type = 0;
  line >> graph.names.emplace_back() >> type >> tensor.v1.rank;
  auto& dims = graph.dims.emplace_back(tensor.v1.rank);
  for (uint32_t& dim : dims) line >> dim;
  auto& to = input ? graph.inputs : graph.outputs;
  tensor.v1.id = static_cast<uint32_t>(graph.names.size());
  tensor.v1.name = graph.names.back().c_str();
  tensor.v1.type =
      input ? abi::TensorType::kAppWrite : abi::TensorType::kAppRead;
  tensor.v1.data_type = static_cast<abi::DataType>(type);
  tensor.v1.dims = dims.data();
  to.push_back(tensor);
  return !line.fail();
}

bool Parse(const void* binary, uint64_t bytes, FakeContext& context) {
  std::istringstream text(std::string(static_cast<const char*>(binary), bytes));
  for (std::string row, word; std::getline(text, row);) {
    std::istringstream line(row);
    line >> word;
    if (word == "soc") {
      line >> context.soc;
    } else if (word == "graph") {
      FakeGraph& graph = context.graphs.emplace_back();
      line >> graph.name >> graph.blob.spill_fill_bytes;
    } else if (context.graphs.empty() ||
               !AddTensor(line, word == "in", context.graphs.back())) {
      return false;
    }
    if (line.fail()) return false;
  }
  return context.soc != 0;
}

void Describe(FakeContext& context) {
  for (const FakeGraph& graph : context.graphs) {
    abi::BinaryGraph& raw = context.raw.emplace_back();
    raw = {.version = 3, .graph = {}};
    raw.graph.name = graph.name.c_str();
    raw.graph.input_count = static_cast<uint32_t>(graph.inputs.size());
    raw.graph.inputs = graph.inputs.data();
    raw.graph.output_count = static_cast<uint32_t>(graph.outputs.size());
    raw.graph.outputs = graph.outputs.data();
    raw.graph.blob = &graph.blob;
    raw.graph.blob_bytes = sizeof(graph.blob);
  }
  abi::BinaryInfoV3& info = context.info.v3;
  context.info.version = 3;
  info.backend = abi::kBackendHtp;
  info.build_id = "fake";
  info.graph_count = static_cast<uint32_t>(context.raw.size());
  info.graphs = context.raw.data();
  info.soc = context.soc;
}

abi::Result SystemCreate(abi::Handle* out) {
  *out = &state().systems.emplace_back();
  return abi::kOk;
}
abi::Result SystemRead(abi::Handle system, const void* binary, uint64_t bytes,
                       const abi::BinaryInfo** out) {
  auto& context = *static_cast<FakeContext*>(system);
  if (!Parse(binary, bytes, context)) return 30010;
  Describe(context);
  *out = &context.info;
  return abi::kOk;
}
abi::Result SystemFree(abi::Handle) { return abi::kOk; }

abi::Result ContextFromBinary(abi::Handle, abi::Handle,
                              const abi::Config** configs, const void* binary,
                              uint64_t bytes, abi::Handle* out, abi::Handle) {
  std::ostringstream options;
  for (; configs != nullptr && *configs != nullptr; ++configs) {
    const auto& htp =
        *static_cast<const abi::HtpContextConfig*>((*configs)->custom);
    if (htp.option == abi::HtpContextOption::kFileReadBudget) {
      options << "read=" << htp.mib;
    } else if (htp.option == abi::HtpContextOption::kSpillFillGroup) {
      options << " spill=" << htp.group.bytes << " of "
              << Name(htp.group.first);
    } else {
      return 5010;
    }
  }
  if (const abi::Result result = Log("contextCreateFromBinary", options.str()))
    return result;
  FakeContext& context = state().contexts.emplace_back();
  if (!Parse(binary, bytes, context)) return 30010;
  context.handle = NewHandle("context");
  *out = Raw(context.handle);
  return abi::kOk;
}

abi::Result ContextFree(abi::Handle context, abi::Handle) {
  for (const auto& [handle, memory] : state().seen.live) {
    // Memory that is registered in it would hang in the air.
    if (memory.context == Name(context)) return 5002;
  }
  return Free("contextFree", context);
}

// ---- Memory.

void* Allocate(const char* call, int heap, uint32_t flags, uint64_t bytes) {
  if (Log(call, heap, flags, bytes) != abi::kOk) return nullptr;
  void* memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  // It does not come zeroed.
  for (uint64_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(memory)[i] = 0xa5;
  const int fd = static_cast<int>(++state().made["fd"]);
  state().allocations[fd] = memory;
  state().seen.live["fd " + std::to_string(fd)].allocation = bytes;
  return memory;
}

uint64_t ElementBytes(abi::DataType type) {
  const uint32_t bits = static_cast<uint32_t>(type) & 0xFF;
  return bits == 0x32 ? 4 : bits == 0x16 ? 2 : bits == 0x08 ? 1 : 0;
}

abi::Result MemoryRegister(abi::Handle context,
                           const abi::MemoryDescriptor* memory, uint32_t count,
                           abi::Handle* out) {
  if (const abi::Result result = Log("memRegister", Name(context), count))
    return result;
  for (uint32_t i = 0; i < count; ++i) {
    const abi::HtpMemory& place = *memory[i].custom;
    FakeQnn::Registration what{.context = Name(context),
                               .fd = place.fd,
                               .offset = place.offset,
                               .allocation = place.bytes,
                               .bytes = ElementBytes(memory[i].data_type)};
    for (uint32_t d = 0; d < memory[i].rank; ++d)
      what.bytes *= memory[i].dims[d];
    const auto block = state().seen.live.find("fd " + std::to_string(what.fd));
    if (memory[i].type != abi::kCustomMemory ||
        place.type != abi::kSharedBuffer || block == state().seen.live.end() ||
        block->second.allocation != what.allocation || what.bytes == 0 ||
        what.offset + what.bytes > what.allocation) {
      return 8003;
    }
    out[i] = Raw(NewHandle("memory", what));
  }
  return abi::kOk;
}

abi::Result MemoryDeregister(const abi::Handle* handles, uint32_t count) {
  if (const abi::Result result = Log("memDeRegister", count)) return result;
  for (uint32_t i = 0; i < count; ++i)
    if (state().seen.live.erase(Name(handles[i])) != 1) return kBadHandle;
  return abi::kOk;
}

std::byte* DataOf(const abi::TensorV1& tensor) {
  if (tensor.memory != abi::kMemoryHandle)
    return static_cast<std::byte*>(tensor.buffer.data);
  const auto memory = state().seen.live.find(Name(tensor.memory_handle));
  if (memory == state().seen.live.end()) return nullptr;
  return static_cast<std::byte*>(state().allocations[memory->second.fd]) +
         memory->second.offset;
}

// ---- Graphs and clocks.

abi::Result GraphRetrieve(abi::Handle context, const char* name,
                          abi::Handle* out) {
  if (const abi::Result result = Log("graphRetrieve", Name(context), name))
    return result;
  for (FakeContext& one : state().contexts) {
    for (FakeGraph& graph : one.graphs)
      if (one.handle == Name(context) && graph.name == name) *out = &graph;
  }
  return *out == nullptr ? 6002 : abi::kOk;
}

abi::Result GraphExecute(abi::Handle graph, const abi::Tensor* inputs,
                         uint32_t input_count, abi::Tensor* outputs,
                         uint32_t output_count, abi::Handle, abi::Handle) {
  const std::string& name = static_cast<FakeGraph*>(graph)->name;
  if (const abi::Result result = Log("graphExecute", name)) return result;
  std::vector<std::byte*> in, out;
  for (uint32_t i = 0; i < input_count; ++i) in.push_back(DataOf(inputs[i].v1));
  for (uint32_t i = 0; i < output_count; ++i)
    out.push_back(DataOf(outputs[i].v1));
  for (const auto* all : {&in, &out})
    for (const std::byte* data : *all)
      if (data == nullptr) return 6004;
  state().seen.run(name, in, out);
  return abi::kOk;
}

abi::Result CreatePowerId(uint32_t device, uint32_t core, uint32_t* out) {
  if (const abi::Result result = Log("createPowerConfigId", device, core))
    return result;
  *out = ++state().made["power"];
  state().seen.live["power " + std::to_string(*out)] = {};
  return abi::kOk;
}
abi::Result DestroyPowerId(uint32_t id) {
  Log("destroyPowerConfigId");
  return state().seen.live.erase("power " + std::to_string(id)) == 1 ? abi::kOk
                                                                     : 13001;
}

abi::Result SetPower(uint32_t id, const abi::PowerConfig** configs) {
  std::ostringstream text;
  for (; *configs != nullptr; ++configs) {
    const abi::PowerConfig& config = **configs;
    if (config.option == abi::PowerOption::kDcvs) {
      const abi::Dcvs& dcvs = config.dcvs;
      if (dcvs.id != id || dcvs.set_enable != 1 || dcvs.bus.set != 1 ||
          dcvs.core.set != 1 || dcvs.set_sleep_latency != 1) {
        return 13001;
      }
      text << std::hex << "corners=" << static_cast<uint32_t>(dcvs.bus.min)
           << ',' << static_cast<uint32_t>(dcvs.core.max) << std::dec
           << " dcvs=" << dcvs.enable << " sleep=" << dcvs.sleep_latency;
    } else {
      text << (config.option == abi::PowerOption::kRpcPolling ? " polling="
                                                              : " latency=")
           << config.us;
    }
  }
  return Log("setPowerConfig", text.str());
}

constexpr abi::HtpInfrastructure kInfrastructure = {
    .type = 0,
    .create_power_config_id = CreatePowerId,
    .destroy_power_config_id = DestroyPowerId,
    .set_power_config = SetPower,
    .set_memory_config = nullptr,
};

// ---- The tables.

// What only a compiler calls.
template <typename... Args>
abi::Result Refuse(Args...) {
  return abi::kErrorUnsupported;
}

abi::Provider MakeProvider() {
  abi::Provider provider = {};
  provider.backend = abi::kBackendHtp;
  provider.core_version = {2, 40, 0};
  abi::Functions& api = provider.functions;
  api.property_has_capability = [](uint32_t key) -> abi::Result {
    return key == abi::kTensorMemoryHandles ? 0 : 2000;
  };
  api.backend_create = [](abi::Handle, const abi::Config**, abi::Handle* out) {
    return Make("backendCreate", "backend", out);
  };
  api.backend_get_build_id = [](const char** out) {
    *out = "fake";
    return abi::kOk;
  };
  api.backend_get_supported_operations = [](abi::Handle, uint32_t* count,
                                            const abi::OperationName**) {
    *count = 0;
    return abi::kOk;
  };
  api.backend_validate_op_config = Refuse;
  api.backend_free = [](abi::Handle it) { return Free("backendFree", it); };
  api.context_create = Refuse;
  api.context_get_binary_size = Refuse;
  api.context_get_binary = Refuse;
  api.context_create_from_binary = ContextFromBinary;
  api.context_free = ContextFree;
  api.graph_create = Refuse;
  api.graph_add_node = Refuse;
  api.graph_finalize = Refuse;
  api.graph_retrieve = GraphRetrieve;
  api.graph_execute = GraphExecute;
  api.tensor_create_graph_tensor = Refuse;
  api.log_create = [](abi::LogCallback, abi::LogLevel, abi::Handle* out) {
    return Make("logCreate", "log", out);
  };
  api.log_free = [](abi::Handle it) { return Free("logFree", it); };
  api.memory_register = MemoryRegister;
  api.memory_deregister = MemoryDeregister;
  api.device_get_infrastructure = [](const abi::HtpInfrastructure** out) {
    *out = &kInfrastructure;
    return Log("deviceGetInfrastructure");
  };
  api.device_create = [](abi::Handle, const abi::Config**, abi::Handle* out) {
    return Make("deviceCreate", "device", out);
  };
  api.device_free = [](abi::Handle it) { return Free("deviceFree", it); };
  return provider;
}

}  // namespace
}  // namespace hexllm::testing

using hexllm::testing::Log;
using hexllm::testing::state;
namespace abi = hexllm::htp::abi;

extern "C" {

hexllm::testing::FakeQnn* GetFakeQnn() {
  state() = {};
  return &state().seen;
}

abi::Result QnnInterface_getProviders(const abi::Provider*** list,
                                      uint32_t* count) {
  static const abi::Provider provider = hexllm::testing::MakeProvider();
  static const abi::Provider* all[] = {&provider};
  *list = all;
  *count = 1;
  return abi::kOk;
}

abi::Result QnnSystemInterface_getProviders(const abi::SystemProvider*** list,
                                            uint32_t* count) {
  static abi::SystemProvider provider = {};
  provider.version = {1, 15, 0};
  provider.functions.context_create = hexllm::testing::SystemCreate;
  provider.functions.context_get_metadata = hexllm::testing::SystemRead;
  provider.functions.context_free = hexllm::testing::SystemFree;
  static const abi::SystemProvider* all[] = {&provider};
  *list = all;
  *count = 1;
  return abi::kOk;
}

void* rpcmem_alloc(int heap, uint32_t flags, int bytes) {
  return hexllm::testing::Allocate("rpcmem_alloc", heap, flags,
                                   static_cast<uint64_t>(bytes));
}
void* rpcmem_alloc2(int heap, uint32_t flags, size_t bytes) {
  return hexllm::testing::Allocate("rpcmem_alloc2", heap, flags, bytes);
}

int rpcmem_to_fd(void* memory) {
  if (Log("rpcmem_to_fd") != abi::kOk) return -1;
  for (const auto& [fd, data] : state().allocations)
    if (data == memory) return fd;
  return -1;
}

void rpcmem_free(void* memory) {
  Log("rpcmem_free");
  auto& all = state().allocations;
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (it->second != memory) continue;
    state().seen.live.erase("fd " + std::to_string(it->first));
    all.erase(it);
    std::free(memory);
    return;
  }
}

}  // extern "C"
